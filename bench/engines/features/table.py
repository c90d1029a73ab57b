"""The table of features: what real servers and loadgen say of the same runs, beyond single
requests.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.engines.engines import Real
from bench.engines.features import cache_states, classes, departures, sessions, structured_output
from bench.engines.features.measured_run import Counters, FeatureFailed, Row, TriedServer
from bench.engines.tiny_lora import RANK, tiny_lora

HEAD = ("engine", "version", "asked", "requests", "seen")
FAILED = "FAILED"
Rows = Callable[[TriedServer], Iterator[Row]]


@dataclass(frozen=True)
class EngineFeatures:
    """The features of an engine, and what runs of them need.

    Attributes:
        raw: The engine's own flags of the server, which may need files in a folder.
        counters: The names of its counters.
        words: As in `TriedServer`.
        output_tokens: As in `TriedServer`.
        features: The features that it has.
    """

    raw: Callable[[Path], Sequence[str]]
    counters: Counters
    words: int
    output_tokens: int
    features: Sequence[Rows]


def _vllm(folder: Path) -> Sequence[str]:
    adapters = [
        f"{name}={tiny_lora(folder / name, seed)}" for seed, name in enumerate(classes.ADAPTERS)
    ]
    # Without it a model that knows no JSON may fill an answer with blanks.
    forms = json.dumps({"backend": "xgrammar", "disable_any_whitespace": True})
    return [
        *(
            "--enable-prompt-tokens-details",
            "--scheduling-policy",
            "priority",
            "--structured-outputs-config",
            forms,
        ),
        *(
            "--enable-lora",
            "--max-loras",
            "2",
            "--max-lora-rank",
            str(RANK),
            "--lora-modules",
            *adapters,
        ),
    ]


def _llamacpp(folder: Path) -> Sequence[str]:
    return ["--slot-save-path", f"{folder}/", "--cache-ram", "0"]


FEATURES = {
    "vllm": EngineFeatures(
        _vllm,
        Counters(
            ("vllm:prefix_cache_queries_total",),
            "vllm:prefix_cache_hits_total",
            "vllm:generation_tokens_total",
        ),
        words=150,
        output_tokens=200,
        features=(
            sessions.rows,
            departures.rows,
            cache_states.rows,
            classes.rows,
            structured_output.rows,
        ),
    ),
    "llamacpp": EngineFeatures(
        _llamacpp,
        Counters(
            ("llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"),
            "llamacpp:prompt_tokens_cached_total",
            "llamacpp:tokens_predicted_total",
        ),
        words=20,
        output_tokens=40,
        features=(sessions.rows, departures.rows, cache_states.rows, structured_output.rows),
    ),
}


def feature_table(name: str, real: Real, folder: Path) -> Iterator[tuple[str, ...]]:
    """Run each feature of an engine, and yield a row of the table for each run; nothing if it has
    none.

    Args:
        name: The engine's name in the table.
        real: The engine; one server is started.
        folder: Where the files of the runs are left.

    Raises:
        EngineFailed: The server does not start.
    """
    engine = FEATURES.get(name)
    if engine is None:
        return
    with real.case.begin(more=engine.raw(folder)) as server:
        server.ready(real.case.ready_s)
        version = server.version() or server.engine.version() or "unknown"
        tried = TriedServer(
            real, server, engine.counters, folder, engine.words, engine.output_tokens
        )
        for row in itertools.chain.from_iterable(
            _rows(feature, tried) for feature in engine.features
        ):
            seen = f"{row.seen}; {FAILED}: {'; '.join(row.problems)}" if row.problems else row.seen
            yield (name, version, f"`{row.asked}`", row.requests, seen)


def _rows(feature: Rows, tried: TriedServer) -> Iterator[Row]:
    try:
        yield from feature(tried)
    except FeatureFailed as failed:
        yield Row(feature.__module__.rpartition(".")[2], "-", "no result", (str(failed),))
