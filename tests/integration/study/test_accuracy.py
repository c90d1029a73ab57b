"""The accuracy check of a server: how questions are asked, and what counts as an answer."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.engines.sim.http1 import Request, whole
from loadgen.lab.study.execute import accuracy_gate
from loadgen.lab.study.execute.accuracy_gate import TOGETHER, answers
from loadgen.lab.study.execute.trial import Answers
from loadgen.lab.study.spec.questions import Question, sha256
from tests.helpers.scripted_server import Script, chatting, read_request, serving

SUMS = [Question(f"{n} + {n}?", (str(2 * n),)) for n in range(1, 21)]
KEY = "sk-a-key-of-mine"


def content(text: str | None) -> bytes:
    return whole(
        200,
        json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode(),
    )


def asked(ask: Request) -> int:
    """The number that a question doubles."""
    return int(ask.json["messages"][0]["content"].split()[0])


async def answered(reply: Callable[[Request], bytes] | Script, **settings: Any) -> Answers:
    script: Any = reply if asyncio.iscoroutinefunction(reply) else chatting(reply)  # type: ignore[arg-type]
    async with serving(script) as url:
        return await answers(RunSettings(base_url=url, **settings), "m", SUMS)


async def test_each_answer_is_right_or_wrong() -> None:
    found = await answered(
        lambda ask: content(f"It is {2 * asked(ask) if asked(ask) != 3 else 7}.")
    )
    assert found == Answers(
        questions=sha256(SUMS),
        right=tuple(n != 3 for n in range(1, 21)),
        wrong=({"question": "3 + 3?", "answer": "6", "said": "It is 7."},),
    )


async def test_questions_use_greedy_chat_whatever_the_workload() -> None:
    bodies: list[tuple[str, dict[str, Any]]] = []

    def reply(ask: Request) -> bytes:
        bodies.append((ask.path, ask.json))
        return content("2")

    workload = {
        "backend": "openai",
        "endpoint": "/v1/completions",
        "temperature": 0.9,
        "top_p": 0.5,
        "seed": 7,
    }
    extra = {"min_tokens": 100, "chat_template_kwargs": {"enable_thinking": False}}
    await answered(reply, **workload, ignore_eos=True, extra_body=extra)
    path, body = min(bodies, key=lambda sent: int(sent[1]["messages"][0]["content"].split()[0]))
    text = "1 + 1?\n\nGive the answer alone on the last line."
    assert path == "/v1/chat/completions"
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": text}],
        "max_completion_tokens": accuracy_gate.ANSWER_TOKENS,
        "temperature": 0,
        "seed": 0,
        "chat_template_kwargs": {"enable_thinking": False},
    }


async def test_a_chat_endpoint_of_the_workloads_own_is_asked() -> None:
    paths: set[str] = set()

    def reply(ask: Request) -> bytes:
        paths.add(ask.path)
        return content("2")

    await answered(reply, backend="openai-chat", endpoint="/other/chat/completions")
    assert paths == {"/other/chat/completions"}


async def test_at_most_eight_questions_are_asked_at_once() -> None:
    """Nobody is answered before as many have asked as may; one more would be seen before the
    first answer.
    """
    waiting, most, full = 0, 0, asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal waiting, most
        while ask := await read_request(reader):
            waiting += 1
            most = max(most, waiting)
            if waiting == TOGETHER:
                full.set()
            await full.wait()
            waiting -= 1
            writer.write(content(str(2 * asked(ask))))
            await writer.drain()

    found = await answered(script)
    assert most == TOGETHER
    assert all(found.right)


async def test_reasoning_only_answer_is_not_right() -> None:
    found = await answered(lambda ask: content(None if asked(ask) == 1 else str(2 * asked(ask))))
    assert found.right == (False, *[True] * 19)
    assert found.wrong[0] == {"question": "1 + 1?", "answer": "2", "said": ""}
    assert found.trouble == ""


async def test_a_question_that_fails_counts_as_asked_and_not_right() -> None:
    found = await answered(
        lambda ask: whole(500, b"oh") if asked(ask) == 1 else content(str(2 * asked(ask)))
    )
    assert found.right == (False, *[True] * 19)
    assert (found.wrong, found.trouble) == ((), "")


async def test_questions_without_an_answer_in_time_are_told_from_those_that_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accuracy_gate, "ANSWER_S", 0.3)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader):
            pass

    found = await answered(silent)
    assert found.unjudged
    assert set(found.late) <= set(range(20))
    assert "got no answer" in found.trouble


async def test_many_failures_leave_accuracy_unknown_and_stop_early() -> None:
    requests = 0

    def reply(ask: Request) -> bytes:
        nonlocal requests
        requests += 1
        return whole(400, b'{"error": "no chat\\n template"}')

    found = await answered(reply)
    assert requests < len(SUMS)
    assert not any(found.right)
    assert not found.unjudged
    assert found.trouble.startswith("of 20 questions ")
    assert found.trouble.endswith(
        '/v1/chat/completions answers 400: {"error": "no chat\\n template"}'
    )


@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b"no JSON", b'{"choices": []}', b'{"choices": [{"text": "2"}]}']
)
async def test_invalid_chat_body_is_not_an_answer(body: bytes) -> None:
    assert "answers 200: " in (await answered(lambda ask: whole(200, body))).trouble


async def test_a_server_that_is_gone_is_told() -> None:
    async with serving(chatting(lambda ask: content("2"))) as url:
        pass
    found = await answers(RunSettings(base_url=url), "m", SUMS)
    assert url in found.trouble
    assert len(found.right) == 20


async def test_credentials_are_kept_out_of_what_is_kept() -> None:
    found = await answered(lambda ask: content(f"I was given {KEY}"), api_key=KEY)
    assert found.wrong[0]["said"] == "I was given (given)"
    failed = await answered(lambda ask: whole(401, f"{KEY} is wrong".encode()), api_key=KEY)
    assert KEY not in failed.trouble
    assert "(given) is wrong" in failed.trouble
