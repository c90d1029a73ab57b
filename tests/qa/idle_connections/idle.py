"""Runs over connections that a server closes when they have been idle for a while."""

import contextlib
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

import loadgen
from loadgen.testing.process import started
from tests.helpers.source import ROOT

TOKENIZER = str(ROOT / "engines" / "sim" / "tokenizer.json")


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Attributes:
        outcomes: Requests by outcome.
        late: Requests that had to open a connection.
        reused: Requests that were answered on a connection that had carried another before.
        result: The whole result.
    """

    outcomes: dict[str, int]
    late: int
    reused: int
    result: dict[str, Any]


@contextlib.contextmanager
def server(keep_alive_s: float, token_ms: float, delay_ms: float) -> Iterator[str]:
    """The URL of a server behind a relay that takes `delay_ms` each way; without delay the
    server's own.
    """
    with contextlib.ExitStack() as stack:
        # Where the modules below are.
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("PYTHONPATH", str(ROOT))
        url = stack.enter_context(
            started("tests.qa.idle_connections.uvicorn_server", str(keep_alive_s), str(token_ms))
        ).url
        if delay_ms:
            url = stack.enter_context(
                started("tests.qa.idle_connections.relay", url.rpartition(":")[2], str(delay_ms))
            ).url
        yield url


def run(url: str, **load: Any) -> Outcome:
    """Send this load of short prompts."""
    given = {"random_input_len": 16, "tokenizer": TOKENIZER, "model": "uvicorn"} | load
    before = _counts(url)
    settings = loadgen.RunSettings(
        base_url=url, backend="openai-chat", server_metrics=("off",), **given
    )
    result = loadgen.run_sync(settings).data
    after = _counts(url)
    answered, connections = (after[name] - before[name] for name in ("requests", "connections"))
    own = result["loadgen"]
    return Outcome(
        own["outcomes"], own["client"]["late_connections"], answered - connections, result
    )


def _counts(url: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{url}/counts", timeout=10) as answer:
        return dict(orjson.loads(answer.read()))
