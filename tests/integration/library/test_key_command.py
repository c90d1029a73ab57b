"""A command prints the key (--api-key-command): it runs before the first request, and again when
the key ends or the server refuses it.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import loadgen
from loadgen import report
from loadgen.engines.sim.http1 import Request, whole
from loadgen.testing.replies import models
from tests.helpers.response_bytes import answer, streamed
from tests.helpers.scripted_server import answering_each, serving

GOOD = streamed(answer("Hello", " world"))
REFUSED = whole(401, b'{"error": {"message": "the token has expired"}}')


class Gate:
    """A server that takes one key, for so many requests of the load; then the next one.

    Attributes:
        keys: How often each key came to each path.
    """

    def __init__(self, requests_per_key: float) -> None:
        self.keys: Counter[tuple[str, str]] = Counter()
        self._requests_per_key = requests_per_key
        self._number, self._taken = 1, 0

    def reply(self, request: Request) -> bytes:
        key = request.headers.get("authorization", "")
        self.keys[request.path, key] += 1
        if request.path == "/metrics":
            return whole(200, b"vllm:num_requests_running 0.0\n", kind="text/plain")
        if key != f"Bearer key-{self._number}":
            return REFUSED
        if request.method == "GET":
            return whole(200, models("m"))
        self._taken += 1
        if self._taken >= self._requests_per_key:
            self._number, self._taken = self._number + 1, 0
        return GOOD


@pytest.fixture
def counting(tmp_path: Path) -> Callable[[str], str]:
    """Make a command that prints text with the number of its call in place of N."""
    path = tmp_path / "calls"

    def command(text: str) -> str:
        count = f'echo >> {path}; N=$(wc -l < {path} | tr -d " ")'
        return f"{count}; " + text

    return command


def settings(url: str, **changes: object) -> loadgen.RunSettings:
    return loadgen.RunSettings(
        base_url=url,
        backend="openai-chat",
        tokenizer="built-in",
        random_input_len=3,
        random_output_len=2,
        request_rate=20.0,
        num_prompts=40,
    ).replace(**changes)


async def test_the_key_of_a_command_is_sent_with_all_requests(counting) -> None:
    gate = Gate(float("inf"))
    async with serving(answering_each(gate.reply)) as url:
        result = await loadgen.run(
            settings(
                url,
                api_key_command=counting("echo key-$N"),
                probe_request_rate=5.0,
                num_prompts=5,
                num_warmups=1,
            )
        )
    assert {key for path, key in gate.keys if path != "/version"} == {"Bearer key-1"}
    assert {"/v1/models", "/v1/chat/completions", "/metrics"} <= {path for path, _ in gate.keys}
    assert (result.numbers.completed, result.key_renewals) == (5, 0)


@pytest.mark.parametrize("workers", [1, 2])
async def test_the_command_runs_again_when_the_server_refuses_its_key(counting, workers) -> None:
    gate = Gate(10)
    async with serving(answering_each(gate.reply)) as url:
        result = await loadgen.run(
            settings(url, api_key_command=counting("echo key-$N"), workers=workers)
        )
    assert result.key_renewals == 1  # a minute has not passed
    assert result.outcomes["status(401)"] + result.numbers.completed == 40
    assert result.numbers.completed >= 10
    assert gate.keys["/v1/chat/completions", "Bearer key-2"] > 1
    assert "API key: renewed 1 time during the run" in report.render(result)
    assert "key-1" not in report.to_json(result.data)


async def test_refused_requests_succeed_with_the_next_key_if_they_are_sent_again(counting) -> None:
    gate = Gate(10)
    async with serving(answering_each(gate.reply)) as url:
        result = await loadgen.run(
            settings(url, api_key_command=counting("echo key-$N"), retry="401", num_prompts=15)
        )
    assert (result.numbers.completed, result.key_renewals) == (15, 1)
    assert (
        gate.keys["/v1/chat/completions", "Bearer key-1"] > 10
    )  # 10 that it accepts, and refused ones


async def test_a_key_is_renewed_before_it_ends(counting) -> None:
    keys: Counter[str] = Counter()

    def reply(request: Request) -> bytes:
        keys[request.headers["authorization"]] += request.method == "POST"
        return GOOD if request.method == "POST" else whole(200, models("m"))

    printed = '{\\"token\\": \\"key-$N\\", \\"expires_in\\": 1.5}'
    async with serving(answering_each(reply)) as url:
        result = await loadgen.run(
            settings(url, api_key_command=counting(f'echo "{printed}"'), num_prompts=60)
        )
    assert result.numbers.completed == 60
    assert result.key_renewals == len(keys) - 1 >= 1


async def test_a_key_that_the_command_prints_again_is_not_renewed(counting, tmp_path) -> None:
    gate = Gate(10)
    async with serving(answering_each(gate.reply)) as url:
        result = await loadgen.run(settings(url, api_key_command=counting("echo key-1")))
    assert result.key_renewals == 0
    assert result.outcomes["status(401)"] >= 25
    assert (tmp_path / "calls").read_text() == "\n\n"


async def test_a_command_that_fails_later_leaves_the_key(counting, caplog) -> None:
    gate = Gate(10)
    command = counting('[ $N = 1 ] && echo key-1 || { echo "no login" >&2; exit 3; }')
    async with serving(answering_each(gate.reply)) as url:
        result = await loadgen.run(settings(url, api_key_command=command))
    assert result.key_renewals == 0
    (warning,) = [line for line in caplog.messages if "api_key_command" in line]
    assert "ended with status 3: no login" in warning


async def test_a_command_that_fails_ends_the_run_before_anything_is_sent() -> None:
    gate = Gate(1)
    async with serving(answering_each(gate.reply)) as url:
        with pytest.raises(loadgen.BadInput, match="ended with status 7: you are not logged in"):
            await loadgen.run(
                settings(url, api_key_command="echo you are not logged in >&2; exit 7")
            )
    assert not gate.keys


async def test_a_key_and_a_command_exclude_each_other() -> None:
    with pytest.raises(loadgen.BadInput, match="api_key_command: given together with api_key"):
        await loadgen.run(settings("http://127.0.0.1:1", api_key="k", api_key_command="echo k"))
