"""Benchmark commands from public repositories run here, and ask the server for what they say.

`make test-all` runs one in four of them, and `make qa` the others.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.helpers.command_line import TOKENIZER, loadgen
from tests.helpers.thinning import every_nth
from tests.helpers.wild.commands import WildCommand
from tests.helpers.wild.files import make_files
from tests.helpers.wild.server import WildServer, serving

COMMANDS = WildCommand.all()
# What the one line says of commands that are refused, by their number.
REFUSED = {
    1: "--plot-dataset-stats: this plot is not available; use `loadgen dataset`",
    2: "--backend: openai-audio is for audio, which loadgen does not send",
    5: "--backend: openai-audio is for audio, which loadgen does not send",
    24: "--backend: 'trt' is not supported",
    25: "--mooncake-num-rounds: a trace has its own turns",
    34: "--deterministic-ratio: unknown",  # in no release that was read
    72: "--run-eval: unknown; this is a flag of a fork of vLLM's tool",
    73: "--run-eval: unknown; this is a flag of a fork of vLLM's tool",
    76: "--run-eval: unknown; this is a flag of a fork of vLLM's tool",
    91: "--dataset-path: nvidia/SPEED-Bench is not a file or folder, not in the cache of the hub",
    104: "--random-range-ratio: 1.0 is not in range",  # as in vLLM of today
    111: "--use-chat-template: unknown; this is a flag of InferenceX: add --compat inferencex",
}
MEASURED = ("completions", "generate", "responses", "messages", "embeddings", "pooling", "rerank")
LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens", "max_new_tokens")
SAMPLING = {"--temperature": "temperature", "--top-p": "top_p", "--top-k": "top_k"}


@pytest.fixture(scope="module")
def wild() -> Iterator[WildServer]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wild")
    make_files(folder)
    return folder


@pytest.mark.parametrize(
    "number",
    every_nth(range(len(COMMANDS)), step=4),
    ids=lambda number: f"{number}-{COMMANDS[number].tool}",
)
def test_a_wild_command_runs_with_its_meaning(
    number: int, wild: WildServer, files: Path, tmp_path: Path
) -> None:
    command, before = COMMANDS[number], len(wild.asked)
    places = {"port": wild.port, "out": tmp_path, "files": files, "tokenizer": TOKENIZER}
    done = loadgen(*command.arguments(places), cwd=tmp_path)
    bodies = [asked.body for asked in wild.asked[before:] if asked.path.endswith(MEASURED)]
    bodies = [body for body in bodies if b'"Hello"' not in orjson.dumps(body)]  # the preflight's
    if number in REFUSED:
        assert done.returncode == 2
        assert REFUSED[number] in done.stderr
        assert sum(line.startswith("loadgen run: ") for line in done.stderr.splitlines()) == 1
        assert not bodies
        return
    assert done.returncode == 0, done.stderr
    asked = int(command.value("--num-prompts") or command.value("--num-prompt") or 1)
    if command.sends:
        assert len(bodies) >= max(1, asked // int(command.value("--random-batch-size") or 1))
    for body in bodies:
        for flag, name in SAMPLING.items():
            if (value := command.value(flag)) is not None:
                assert _field(body, name) == float(value)
        if command.value("--dataset-name") == "random" and command.kind == "text":
            assert_drawn_length(command, body)


def assert_drawn_length(command: WildCommand, body: dict[str, Any]) -> None:
    """Check that the answer asked for is as long as the tool draws it."""
    length = command.value("--random-output-len") or command.value("--random-output")
    if length is None:
        return
    ratio = float(command.value("--random-range-ratio") or 0)
    low, high = int(length) * (1 - ratio), int(length) * (1 + ratio)
    if command.tool == "sglang":
        low, high = int(length) * ratio, int(length)
    (limit,) = [value for name in LIMITS if (value := _field(body, name)) is not None]
    assert max(1, math.floor(low)) <= limit <= math.ceil(high)


def _field(body: dict[str, Any], name: str) -> Any:
    return body.get(name, (body.get("sampling_params") or {}).get(name))


def test_nine_of_ten_text_commands_run_and_four_of_five_of_all() -> None:
    text = [number for number, command in enumerate(COMMANDS) if command.kind == "text"]
    assert len(REFUSED.keys() & set(text)) <= 0.1 * len(text)
    assert len(REFUSED) <= 0.2 * len(COMMANDS)
