"""Cases of ends: answers that fail, and those that only look as if they did."""

import orjson

from loadgen.engines.sim.http1 import error_body, whole
from loadgen.lab.judge.case import (
    WORD,
    Ask,
    Case,
    Move,
    Plan,
    Play,
    add,
    delta,
    ends,
    event,
    failing,
    good,
    paced,
    steady,
    streamed,
)
from loadgen.lab.judge.cases.tokens import counts
from loadgen.testing.faults import Step
from loadgen.testing.replies import DONE, STREAM

ENDS = ("completed", "failed", "output_tokens", "e2el_mean_ms")
CREATED = STREAM.replace(b"200 OK", b"201 Created")


def every_second(bad: Play) -> Play:
    """Return a play whose every second answer is `bad`, the others steady."""
    return lambda ask: bad(ask) if ask.number % 2 else steady(ask)


def begun(ask: Ask, *then: bytes, end: bytes | Step = Step.CLOSE) -> Plan:
    """Return a failed answer: five tokens, then these events, then the end."""
    return streamed(paced(good(ask).tokens[:5]), *then, end=end, ok=False)


def finished(ask: Ask, end: bytes | Step, after_ms: float = 50.0) -> Plan:
    """Return a complete answer, [DONE] included, whose body ends in this way."""
    answer = good(ask)
    events = paced(answer.tokens)
    events.append((events[-1][0], b"".join(ends(ask, answer)), 0))
    return streamed(events, end=end, end_after_ms=after_ms)


def heartbeats(ask: Ask) -> Plan:
    """Comments follow [DONE] for three seconds, and no end."""
    answer = good(ask)
    events = paced(answer.tokens)
    last_ms = events[-1][0]
    events.append((last_ms, b"".join(ends(ask, answer)), 0))
    events += [(last_ms + 200.0 * i, b": heartbeat\n\n", 0) for i in range(1, 15)]
    return streamed(events)


def finish_words(ask: Ask, word: str | None, *closing: bytes, ok: bool = True) -> Plan:
    """Return an answer with this finish reason in each event, and no other."""
    events = paced([delta(word, content=WORD)] * ask.request.tokens)
    return streamed(events, *closing, end=b"0\r\n\r\n" if ok else Step.CLOSE, ok=ok)


def refuses_ignore_eos(ask: Ask) -> Plan:
    """An answer that is to go on behind its end token fails."""
    if ask.request.fields.get("ignore_eos"):
        return begun(ask, event(error={"message": "unexpected token after end", "code": 500}), DONE)
    return steady(ask)


def reused(ask: Ask) -> Plan:
    """The connection is closed right behind the answer."""
    plan = steady(ask)
    return Plan([*plan.moves, Move(plan.moves[-1].at_ms, Step.CLOSE)])


def whole_json(ask: Ask) -> Plan:
    """Return the answer as one JSON object, although a stream was asked for."""
    message = {"role": "assistant", "content": WORD * ask.request.tokens}
    total = {"prompt_tokens": ask.prompt_tokens, "completion_tokens": ask.request.tokens}
    choice = {"index": 0, "message": message, "finish_reason": "length"}
    body = orjson.dumps({"id": "x", "choices": [choice], "usage": total})
    return Plan([Move(800.0, whole(200, body))], unseen=ask.request.tokens)


def status(code: int, at_ms: float = 0.0) -> Play:
    """Return the play of an error with this status."""
    return lambda ask: failing(whole(code, error_body("no", code)), at_ms=at_ms)


def _ends(
    name: str,
    does: str,
    source: str,
    play: Play,
    figures: tuple[str, ...] = ENDS,
    *,
    chat: bool = True,
    limit_s: float = 60.0,
) -> None:
    add(Case(name, "ends", does, source, play, figures, chat=chat, limit_s=limit_s))


_ends(
    "error-in-stream",
    "Every second answer has an error inside its stream of status 200, then [DONE].",
    "vllm#57519, sglang#38868 (D1)",
    every_second(lambda ask: begun(ask, good(ask).error("engine died"), DONE, end=b"0\r\n\r\n")),
    chat=False,
)
_ends(
    "abort",
    "Every second answer ends with the finish reason `abort`.",
    "vllm#57082 (dialect 01)",
    every_second(lambda ask: begun(ask, delta("abort"), DONE, end=b"0\r\n\r\n")),
)
_ends(
    "error-in-choice",
    "Every second answer has its error inside the choice.",
    "genkit#6079 (dialect 01)",
    every_second(
        lambda ask: begun(
            ask,
            event(
                choices=[
                    {
                        "index": 0,
                        "delta": {},
                        "finish_reason": "error",
                        "error": {"message": "engine died", "code": 502},
                    }
                ]
            ),
            DONE,
            end=b"0\r\n\r\n",
        )
    ),
)
_ends(
    "cut",
    "Every second connection is closed after five tokens.",
    "sglang#7747",
    every_second(begun),
    chat=False,
)
_ends(
    "reset",
    "Every second connection is reset after five tokens.",
    "guidellm#795",
    every_second(lambda ask: begun(ask, end=Step.RESET)),
    chat=False,
)
_ends(
    "refused-connection",
    "Every second request is reset before any byte: a client that sends it again must say so.",
    "vllm-bench benchmark.rs (D2)",
    every_second(lambda ask: failing(Step.RESET)),
    ("sent", "completed", "failed"),
    chat=False,
)
_ends(
    "status-500",
    "Every second answer is a status 500.",
    "InferenceX#357 (D13)",
    every_second(status(500)),
    chat=False,
)
_ends(
    "status-429",
    "Every second answer is a status 429.",
    "gpustack#1677 (D13)",
    every_second(status(429)),
    ("completed", "failed", "output_tokens"),
    chat=False,
)
_ends(
    "status-201",
    "Answers have the status 201.",
    "ChatGPTNextWeb/NextChat#4797 (dialect 05)",
    lambda ask: Plan([Move(0.0, CREATED), *steady(ask).moves[1:]]),
    chat=False,
)
_ends(
    "open-after-done",
    "Ends the body five seconds after [DONE].",
    "maximhq/bifrost#6784 (dialect 04)",
    lambda ask: finished(ask, b"0\r\n\r\n", 5000),
)
_ends("heartbeats", "Sends comments for 3 s behind [DONE].", "nac#79 (dialect 04)", heartbeats)
_ends(
    "reset-after-done",
    "Resets the connection 50 ms after [DONE].",
    "a form of dialect 04",
    lambda ask: finished(ask, Step.RESET),
)
_ends(
    "no-finish-reason",
    "No finish reason, [DONE] at the end.",
    "router-for-me/CLIProxyAPI#4860 (dialect 06)",
    lambda ask: finish_words(ask, None, counts(ask), DONE),
)
_ends(
    "empty-finish-reason",
    "The finish reason is empty in all events.",
    "ollama/ollama#4357 (dialect 06)",
    lambda ask: finish_words(ask, "", counts(ask), DONE),
)
_ends(
    "null-word",
    'The finish reason is the text "null", and the connection breaks off.',
    "PowerShell/AIShell#350 (dialect 06)",
    every_second(lambda ask: finish_words(ask, "null", ok=False)),
)
_ends(
    "closes",
    "Closes each connection behind its answer, without saying so.",
    "endpoints#386",
    reused,
    ("sent", "completed", "failed", "output_tokens"),
    chat=False,
)
_ends(
    "whole-answer",
    "Sends every second answer as one JSON object: it has no time to its first token.",
    "evalscope#1499 (D21)",
    every_second(whole_json),
    ("ttft_mean_ms", "tpot_mean_ms"),
)
_ends(
    "empty",
    "Every second answer has no token.",
    "vllm#57519 (D1)",
    every_second(lambda ask: streamed([], delta("stop"), counts(ask, 0), DONE, ok=False)),
    ("completed", "failed", "output_tokens"),
)
_ends(
    "ignore-eos",
    "Answers that are to ignore the end token fail.",
    "guidellm#979, #982 (D14)",
    refuses_ignore_eos,
    ("completed", "failed"),
)
_ends(
    "cut-usage",
    "Every second answer is cut off behind its usage, without a finish reason.",
    "guidellm#743 (D42)",
    every_second(lambda ask: begun(ask, counts(ask, 5))),
)
_ends(
    "silence",
    "The last request is never answered: the others must not be lost.",
    "vllm#51030 (D37)",
    lambda ask: Plan([Move(0.0, Step.SILENCE)], ok=False) if ask.number == 9 else steady(ask),
    ("completed",),
    chat=False,
    limit_s=20.0,
)
