"""Requests sent before the run repeat no prompt and no id of the run."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import loadgen
from loadgen.engines.sim.http1 import Request
from loadgen.errors import BadInput
from loadgen.runner.run import run
from loadgen.workload.prompt import Prompt
from tests.helpers.command_line import TOKENIZER
from tests.helpers.response_bytes import DONE, answer, delta, streamed, usage
from tests.helpers.scripted_server import chatting, serving

pytestmark = pytest.mark.slow

COUNT, WARM_UPS = 20, 6
RUN = loadgen.RunSettings(
    backend="openai-chat",
    tokenizer=TOKENIZER,
    random_input_len=8,
    random_output_len=2,
    prefix_repetition_prefix_len=4,
    prefix_repetition_suffix_len=8,
    sonnet_input_len=20,
    sonnet_prefix_len=5,
    num_prompts=COUNT,
    max_concurrency=1,
    preflight=False,
)
READY = {"num_warmups": WARM_UPS, "ready_check_timeout_sec": 5.0}
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"


class Server:
    """Remembers what it was asked; the first of it fails, as many times as it is told."""

    def __init__(self, failures: int = 0) -> None:
        self.asked: list[Request] = []
        self._failures = failures

    def reply(self, ask: Request) -> bytes:
        self.asked.append(ask)
        if len(self.asked) <= self._failures:
            return BUSY
        return streamed(answer("a", "b") + usage(prompt_tokens=9, completion_tokens=2))

    @property
    def prompts(self) -> list[str]:
        """What was asked, in the order in which it came."""
        return [json.dumps(ask.json["messages"]) for ask in self.asked]


async def ran(
    settings: loadgen.RunSettings,
    server: Server | None = None,
    *,
    after_s: float = 0.0,
    **options: Any,
) -> tuple[Any, Server]:
    """A run against a server in this loop, which answers after `after_s` seconds."""
    server = server or Server()
    async with serving(chatting(server.reply, after_s)) as url:
        result = await run(settings.replace(base_url=url), **options)
    return result, server


class Own:
    """A data set of a caller, who has no more prompts than are asked."""

    def prompts(self, count: int) -> Any:
        return (Prompt(f"question {number}", 2, 2, f"own/{number}") for number in range(count))

    def provenance(self) -> dict[str, Any]:
        return {"name": "own"}


def lines(folder: Path, count: int) -> str:
    path = folder / "rows.jsonl"
    path.write_text(
        "".join(json.dumps({"prompt": f"the question {row}"}) + "\n" for row in range(count))
    )
    return str(path)


def conversations(folder: Path, count: int) -> str:
    path = folder / "sharegpt.json"
    said = [
        [
            {"from": "human", "value": f"what is the number {row}"},
            {"from": "gpt", "value": "a b c d e"},
        ]
        for row in range(count)
    ]
    path.write_text(
        json.dumps([{"id": str(row), "conversations": turns} for row, turns in enumerate(said)])
    )
    return str(path)


DATA: dict[str, Callable[[Path], dict[str, Any]]] = {
    "random": lambda folder: {},
    "random with a prefix": lambda folder: {"random_prefix_len": 4},
    "a rule": lambda folder: {"dataset_rule": "vllm-0.11"},
    "prefix_repetition": lambda folder: {"dataset_name": "prefix_repetition"},
    "prose": lambda folder: {"dataset_name": "prose"},
    "a file with more rows": lambda folder: {
        "dataset_name": "jsonl",
        "dataset_path": lines(folder, 100),
    },
    "a file with no more rows": lambda folder: {
        "dataset_name": "jsonl",
        "dataset_path": lines(folder, COUNT),
    },
    "sharegpt": lambda folder: {
        "dataset_name": "sharegpt",
        "dataset_path": conversations(folder, COUNT + 2),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
async def test_warmup_prompts_are_not_prompts_of_the_run(
    data: Callable[[Path], dict[str, Any]], tmp_path: Path
) -> None:
    settings = RUN.replace(**data(tmp_path))
    result, server = await ran(settings.replace(**READY))
    before, measured = server.prompts[: WARM_UPS + 1], server.prompts[WARM_UPS + 1 :]
    assert len(measured) == COUNT
    assert len(set(before)) == WARM_UPS + 1
    assert not set(before) & set(measured)
    assert result.data["loadgen"]["provenance"]["prompts"]["sent_before"] == 0
    cold, alone = await ran(settings)
    assert alone.prompts == measured
    sha256s = {each.data["loadgen"]["provenance"]["prompts"]["sha256"] for each in (cold, result)}
    assert len(sha256s) == 1


async def test_rows_that_say_their_length_need_no_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [{"prompt": f"question {row}", "input_tokens": 9} for row in range(COUNT)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = RUN.replace(
        dataset_name="jsonl", dataset_path=str(path), tokenizer=None, model="m", **READY
    )
    _, server = await ran(settings)
    assert len(set(server.prompts)) == COUNT + WARM_UPS + 1


async def test_a_callers_own_prompts_are_not_sent_beforehand() -> None:
    _, server = await ran(RUN.replace(**READY), dataset=Own())
    assert len(set(server.prompts)) == COUNT + WARM_UPS + 1
    assert not any("question" in prompt for prompt in server.prompts[: WARM_UPS + 1])


async def test_sessions_are_warmed_up_by_first_turns_of_others() -> None:
    settings = RUN.replace(dataset_name="multi_turn", turns="3", num_prompts=9, **READY)
    _, server = await ran(settings)
    assert [len(ask.json["messages"]) for ask in server.asked[: WARM_UPS + 1]] == [1] * (
        WARM_UPS + 1
    )
    assert len(set(server.prompts)) == 9 + WARM_UPS + 1


async def test_stand_ins_are_as_long_as_the_prompts(tmp_path: Path) -> None:
    path = lines(tmp_path, COUNT)
    _, server = await ran(RUN.replace(dataset_name="jsonl", dataset_path=path, **READY))
    from loadgen.workload.tokenizer import tokenizer

    counts = tokenizer.tokenizer_of(RUN).count(
        [ask.json["messages"][0]["content"] for ask in server.asked]
    )
    assert counts[1 : WARM_UPS + 1] == counts[WARM_UPS + 1 : 2 * WARM_UPS + 1]


@pytest.mark.parametrize("workers", [1, 3])
async def test_every_prompt_and_id_is_sent_once(workers: int) -> None:
    one, other = Server(failures=1), Server(failures=2)
    async with serving(chatting(one.reply)) as first, serving(chatting(other.reply)) as second:
        settings = RUN.replace(
            base_url=(first, second), workers=workers, max_concurrency=workers, **READY
        )
        await loadgen.run(settings.replace(num_warmups=8))
    asked = one.asked + other.asked
    # Each target gets the test request until it has answered.
    assert len(asked) == COUNT + 8 + 2 + 3
    assert len({ask.id for ask in asked}) == len(asked)
    assert len(set(one.prompts + other.prompts)) == COUNT + 8 + 1
    assert [len(server.asked) for server in (one, other)] == [10 + 4 + 2, 10 + 4 + 3]


async def test_vllms_way_repeats_the_first_prompt_and_is_counted() -> None:
    result, server = await ran(RUN.replace(warmup_prompt="first", strict=True, **READY))
    before, measured = server.prompts[: WARM_UPS + 1], server.prompts[WARM_UPS + 1 :]
    assert set(before) == {measured[0]}
    assert len(set(measured)) == COUNT
    assert result.data["loadgen"]["provenance"]["prompts"]["sent_before"] == 1
    check = distinct(result)
    assert (check["ok"], check["counts"]) == (False, True)


async def test_levels_meet_no_prompt_of_another() -> None:
    server = Server()
    async with serving(chatting(server.reply)) as url:
        for seed in (0, 1):  # as levels count up
            await loadgen.run(RUN.replace(base_url=url, seed=seed, **READY))
    assert len(set(server.prompts)) == 2 * (COUNT + WARM_UPS + 1)


@pytest.mark.parametrize("name", ["X-Request-Id", "x-request-id"])
async def test_an_id_for_all_requests_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="request_id_prefix"):
        await loadgen.run(
            RUN.replace(base_url="http://127.0.0.1:1", model="m", header=(f"{name}=one",))
        )


def test_prompts_of_a_seed_are_those_of_earlier_versions() -> None:
    from loadgen.workload.datasets import create

    texts = "\n".join(prompt.text for prompt in create(RUN.checked()).prompts(50))
    assert (
        hashlib.sha256(texts.encode()).hexdigest()
        == "18795fd652c0e5eaa78442f522878ddb32f9516350aa9e740770cc44a09328d7"
    )


async def test_a_second_run_with_the_same_seed_meets_a_warm_server() -> None:
    known: set[bytes] = set()

    def reply(ask: Request) -> bytes:
        cached = 8 if ask.body in known else 0
        known.add(ask.body)
        counts = usage(
            prompt_tokens=9, completion_tokens=2, prompt_tokens_details={"cached_tokens": cached}
        )
        return streamed(delta(content="a") + delta("stop", content="b") + counts + DONE)

    async with serving(chatting(reply)) as url:
        runs = [await loadgen.run(RUN.replace(base_url=url, seed=seed)) for seed in (0, 0, 1)]
    assert [distinct(result)["ok"] for result in runs] == [True, False, True]


def distinct(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = next(
        check for check in result.data["loadgen"]["checks"] if check["name"] == "prompts repeated"
    )
    return found


async def test_warm_ups_that_fail_are_told(caplog: pytest.LogCaptureFixture) -> None:
    await ran(RUN.replace(num_warmups=WARM_UPS), Server(failures=2))
    assert [record.getMessage() for record in caplog.records if record.name == "loadgen"] == [
        f"2 of {WARM_UPS} warm-up requests failed (status(503): 2)"
    ]
