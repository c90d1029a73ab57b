"""Cases: what their plans claim is what their bytes say, read by another program."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from loadgen.engines.sim.http1 import LAST_CHUNK, Request, RequestError
from loadgen.lab.judge.case import WORD, Ask, Plan
from loadgen.lab.judge.cases import CASES, CONTROL, GROUPS, chosen
from loadgen.lab.judge.server import Log, TruthServer
from loadgen.lab.judge.tokenizer import write_tokenizer
from loadgen.lab.judge.truth import TOLERANCES
from loadgen.testing.faults import Step

TOKENS = 20
# Whose usage says something else on purpose, or has nothing to count with.
OTHER_COUNTS = {"usage-partial", "usage-zero", "usage-too-small", "reasoning-beside"}
TEXTS = ("content", "reasoning", "reasoning_content", "thinking", "tool_calls", "reasoning_details")


def ask(number: int = 0, path: str = "/v1/chat/completions", **fields: Any) -> Ask:
    body = {
        "messages": [{"role": "user", "content": "a b c"}],
        "max_tokens": TOKENS,
        "stream": True,
        "stream_options": {"include_usage": True},
    } | fields
    head = f"POST {path} HTTP/1.1\r\nuser-agent: python\r\n".encode()
    request = Request("POST", path, head, {}, json.dumps(body).encode())
    return Ask(request, number, "a b c", 3, {}, in_flight=1)


def plans(name: str) -> list[Plan]:
    return [CASES[name].play(ask(number)) for number in range(2)]


def body_of(plan: Plan) -> bytes:
    """The body of a chunked answer, decoded by hand."""
    data = b"".join(move.step for move in plan.moves if isinstance(move.step, bytes))
    _, _, rest = data.partition(b"\r\n\r\n")
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        body, rest = body + rest[:length], rest[length + 2 :]
        if not length:
            break
    return body


def events(plan: Plan) -> list[Any]:
    """The JSON of the events of an answer, by the standard of server-sent events."""
    text = body_of(plan).decode(errors="replace").replace("\r\n", "\n")
    blocks = [
        "\n".join(line[5:].strip() for line in block.split("\n") if line.startswith("data:"))
        for block in text.split("\n\n")
    ]
    return [json.loads(block) for block in blocks if block and block != "[DONE]"]


def usage_of(plan: Plan) -> int | None:
    counts = [event["usage"] for event in events(plan) if event.get("usage")]
    return counts[-1].get("completion_tokens") if counts else None


def is_stream(plan: Plan) -> bool:
    first = plan.moves[0].step if plan.moves else None
    return isinstance(first, bytes) and b"event-stream" in first


def test_there_are_sixty_cases_in_all_groups() -> None:
    assert len(CASES) >= 60
    assert {case.group for case in CASES.values()} == set(GROUPS)
    assert all(case.source and case.does.endswith(".") for case in CASES.values())
    assert all(set(case.figures) <= TOLERANCES.keys() for case in CASES.values())


@pytest.mark.parametrize("name", CASES)
def test_a_plan_is_in_the_order_of_its_times(name: str) -> None:
    for plan in plans(name):
        times = [move.at_ms for move in plan.moves]
        assert times == sorted(times)
        assert all(move.tokens == 0 for move in plan.moves if isinstance(move.step, Step))


@pytest.mark.parametrize("name", [name for name in CASES if name not in OTHER_COUNTS])
def test_the_tokens_of_a_plan_are_those_of_its_usage(name: str) -> None:
    for plan in plans(name):
        if is_stream(plan) and plan.ok and not plan.cheats and (counted := usage_of(plan)):
            assert sum(move.tokens for move in plan.moves) + plan.unseen == counted


@pytest.mark.parametrize("name", CASES)
def test_a_plan_that_is_ok_has_an_end(name: str) -> None:
    for plan in plans(name):
        if plan.ok and is_stream(plan):
            reasons = [
                choice.get("finish_reason")
                for event in events(plan)
                for choice in event.get("choices", ())
            ]
            assert any(reasons) or b"[DONE]" in body_of(plan)


def shown(found: Sequence[Any]) -> int:
    """The events with text under any key."""
    deltas = [choice.get("delta") or {} for event in found for choice in event.get("choices", ())]
    return sum(any(delta.get(key) for key in TEXTS) for delta in deltas)


@pytest.mark.parametrize("name", ["steady", "late-usage", "comments", "crlf", "annotations"])
def test_each_token_of_a_plain_case_is_an_event_with_text(name: str) -> None:
    for plan in plans(name):
        assert shown(events(plan)) == sum(move.tokens for move in plan.moves) == TOKENS


@pytest.mark.parametrize("name", [name for name in CASES if name != "annotations"])
def test_an_event_has_the_fields_that_its_standard_requires(name: str) -> None:
    required = {"id", "object", "created", "model"}
    for plan in plans(name):
        if is_stream(plan):
            assert all(required <= event.keys() for event in events(plan) if "choices" in event)


def test_half_of_the_answers_fail_where_every_second_is_bad() -> None:
    assert [plan.ok for plan in plans("cut")] == [True, False]
    assert [plan.ok for plan in plans("status-500")] == [True, False]


def test_a_cached_answer_is_one_to_a_prompt_that_came_before() -> None:
    first = ask()
    again = Ask(first.request, 1, first.prompt, 3, {first.prompt: 1})
    play = CASES["cheat-cached"].play
    assert (play(first).cheats, play(again).cheats) == (False, True)


def test_a_group_is_chosen_with_the_control_before_it() -> None:
    names = [case.name for case in chosen(["load"])]
    assert names[0] == CONTROL
    assert {CASES[name].group for name in names[1:]} == {"load"}


def test_what_is_no_prompt_is_neither_answered_nor_counted() -> None:
    """vllm-rs asks for /tokenize first, and goes on without it where that is not found."""
    file = io.BytesIO()
    server = TruthServer(CASES[CONTROL], len, Log(file))
    with pytest.raises(RequestError, match="unknown path /tokenize"):
        server.answer(Request("POST", "/tokenize", b"", {}, b'{"prompt": "a"}'))
    assert (server.requests, file.getvalue()) == (0, b"")


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if not case.chat])
def test_a_completion_has_one_end(name: str) -> None:
    plan = CASES[name].play(ask(path="/v1/completions", prompt="a b c"))
    writes = [move.step for move in plan.moves if isinstance(move.step, bytes)]
    assert not [data for data in writes[:-1] if data.endswith(LAST_CHUNK)]


def test_any_tokens_are_a_text_of_as_many(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(str(write_tokenizer(tmp_path) / "tokenizer.json"))
    for begin in range(1, tokenizer.get_vocab_size() - 50, 50):
        ids = [*range(begin, begin + 50)]
        again = tokenizer.encode(tokenizer.decode(ids)).ids
        assert again[-50:] == ids, "a character at the start has a space before it"
    for text, count in ((WORD, 1), (WORD * 7, 7), ("word" + WORD * 6, 7), (" a<unk> b", 5)):
        assert len(tokenizer.encode(text).ids) == count
    prose = "What's in 1 of these, it's kept."
    assert tokenizer.decode(tokenizer.encode(prose).ids) == prose
