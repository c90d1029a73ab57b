"""Asks a running server questions with known answers."""

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson

from loadgen.config.settings import RunSettings
from loadgen.errors import Unreachable
from loadgen.lab.study.execute.trial import Answers
from loadgen.lab.study.spec.questions import Question, sha256
from loadgen.util import http_client
from loadgen.util.redaction import Redaction
from loadgen.workload import endpoints
from loadgen.workload.chat_template.template_tokens import template_options
from loadgen.workload.target import Target

TOGETHER = 8  # questions in flight
ANSWER_TOKENS = 2048  # at most, thinking included
CHAT = "openai-chat"
ANSWER_S = 120.0
MAX_FAILED = 0.05  # share of the questions that may get no answer; they count as wrong
MAX_EXAMPLES, MAX_CHARACTERS = 5, 200  # of wrong answers that are kept
PROMPT = "{}\n\nGive the answer alone on the last line."


async def answers(settings: RunSettings, model: str, questions: Sequence[Question]) -> Answers:
    """Ask a running server over its chat endpoint, with greedy sampling; of several servers the first.

    Settings of sampling and of lengths are ignored, so that all arms are asked in the same way. Options of the chat
    template (`chat_template_kwargs` in `extra_body`) are kept.

    Args:
        settings: Settings of a run of any workload, with the server.
        model: Name of the model in requests.
        questions: The questions.
    """
    own_path = settings.endpoint if endpoints.name_of(settings) == CHAT else None
    chat = settings.replace(backend=CHAT, endpoint=own_path)
    target = Target.from_settings(chat, model)
    slots, failures = asyncio.Semaphore(TOGETHER), list[str]()
    most = int(MAX_FAILED * len(questions))

    async def ask(question: Question) -> str | None:
        async with slots:
            if len(failures) > most:  # the answers are unusable already
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
        {"question": question.text, "answer": question.answers[0], "said": public(said)[-MAX_CHARACTERS:]}
        for question, said, well in zip(questions, replies, right, strict=True)
        if said is not None and not well
    ]
    trouble = ""
    if len(failures) > most:
        trouble = f"of {len(questions)} questions {len(failures)} or more got no answer: {public(failures[0])}"
    return Answers(sha256(questions), right, tuple(wrong[:MAX_EXAMPLES]), trouble)


async def _reply(target: Target, question: Question) -> str:
    """Return the server's reply; empty if it has only thinking.

    Raises:
        Unreachable: No reply, or not one of a chat.
    """
    asked = {
        "model": target.model,
        "messages": [{"role": "user", "content": PROMPT.format(question.text)}],
        "max_completion_tokens": ANSWER_TOKENS,
        "temperature": 0,
        "seed": 0,
    }
    reply = await http_client.send_json(
        target.url,
        orjson.dumps(asked | template_options(target.fields)),
        headers=target.headers,
        verify_tls=target.verify_tls,
        timeout_s=ANSWER_S,
    )
    data: Any = reply.json() if reply.status == 200 else None
    try:
        content = data["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        said = " ".join(reply.body[:MAX_CHARACTERS].decode(errors="replace").split())
        raise Unreachable(f"{target.url} answers {reply.status}: {said}") from None
    return content if isinstance(content, str) else ""
