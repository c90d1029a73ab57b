"""Accuracy: what a running server answers to questions with known answers."""

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson

from loadgen.config.settings import RunSettings
from loadgen.errors import Unreachable
from loadgen.tuning.execute.trial import Answered
from loadgen.tuning.spec.questions import Question, sha256
from loadgen.util import http_client
from loadgen.util.redaction import Redaction
from loadgen.workload.chat_template.overhead import template_options
from loadgen.workload.target import Target, is_chat

TOGETHER = 8  # questions in flight
ANSWER_TOKENS = 2048  # at most, thinking included
ANSWER_S = 120.0
MOST_FAILED = 0.05  # share of the questions that may get no answer; they count as not right
EXAMPLES, LONGEST = 5, 200  # wrong answers that are kept, and characters of each
ASKED = "{}\n\nGive the answer alone on the last line."


async def answers(settings: RunSettings, model: str, questions: Sequence[Question]) -> Answered:
    """Ask a running server, greedily, over its chat endpoint; of several servers the first.

    What the settings say of sampling and of lengths is left out: all arms are asked in the same way. Options of the
    chat template (`chat_template_kwargs` in `extra_body`) stay.

    Args:
        settings: Where to ask, as for a run; those of any workload.
        model: Its name in requests.
        questions: In any number.
    """
    chat = settings.replace(backend="openai-chat", endpoint=settings.endpoint if is_chat(settings) else None)
    target = Target.from_settings(chat, model)
    slots, failures = asyncio.Semaphore(TOGETHER), list[str]()
    most = int(MOST_FAILED * len(questions))

    async def ask(question: Question) -> str | None:
        async with slots:
            if len(failures) > most:  # the others would wait as long for nothing
                return None
            try:
                return await _reply(target, question)
            except Unreachable as error:
                failures.append(str(error))
                return None

    replies = await asyncio.gather(*map(ask, questions))
    right = tuple(said is not None and question.right(said) for question, said in zip(questions, replies, strict=True))
    public = Redaction(target.headers)
    wrong = [
        {"question": question.text, "answer": question.answers[0], "said": public(said)[-LONGEST:]}
        for question, said, well in zip(questions, replies, right, strict=True)
        if said is not None and not well
    ]
    trouble = ""
    if len(failures) > most:
        trouble = f"of {len(questions)} questions {len(failures)} or more got no answer: {public(failures[0])}"
    return Answered(sha256(questions), right, tuple(wrong[:EXAMPLES]), trouble)


async def _reply(target: Target, question: Question) -> str:
    """What the server answers; nothing where it has only thought.

    Raises:
        Unreachable: No answer, or none of a chat.
    """
    asked = {
        "model": target.model,
        "messages": [{"role": "user", "content": ASKED.format(question.text)}],
        "max_completion_tokens": ANSWER_TOKENS,
        "temperature": 0,
        "seed": 0,
    }
    reply = await http_client.post(
        target.url,
        orjson.dumps(asked | template_options(target.fields)),
        headers=target.headers,
        verify_tls=target.verify_tls,
        timeout_s=ANSWER_S,
    )
    told: Any = reply.json() if reply.status == 200 else None
    try:
        content = told["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        said = " ".join(reply.body[:LONGEST].decode(errors="replace").split())
        raise Unreachable(f"{target.url} answers {reply.status}: {said}") from None
    return content if isinstance(content, str) else ""
