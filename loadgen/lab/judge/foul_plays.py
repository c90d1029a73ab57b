"""Foul plays: answers that fail, those that only look as if they did, and servers that cheat."""

import re
from dataclasses import replace

import orjson

from loadgen.engines.sim.http1 import LAST_CHUNK, error_body, whole
from loadgen.lab.judge.case import (
    WORD,
    Ask,
    Move,
    Plan,
    Play,
    delta,
    ends,
    event,
    failing,
    good,
    paced,
    steady,
    streamed,
)
from loadgen.lab.judge.plays import counts
from loadgen.testing.faults import Step
from loadgen.testing.replies import DONE, STREAM

CREATED = STREAM.replace(b"200 OK", b"201 Created")
TOOLS = re.compile(rb"loadgen|vllm|guidellm|aiperf|python|bench|aiohttp|httpx|evalscope", re.I)
SHARE = 4  # of the tokens, one is sent by a cheat
FAST = {"first_ms": 2.0, "gap_ms": 1.0}


def every_second(play: Play, ask: Ask) -> Plan:
    """Every second answer is that of a play, the others are steady."""
    return play(ask) if ask.number % 2 else steady(ask)


def _begun(ask: Ask, *then: bytes, end: bytes | Step = Step.CLOSE) -> Plan:
    """Return a failed answer: five tokens, then these events, then the end."""
    return streamed(paced(good(ask).tokens[:5]), *then, end=end, ok=False)


def cut(ask: Ask, step: str = "CLOSE") -> Plan:
    """Five tokens, then this step of the connection."""
    return _begun(ask, end=Step[step])


def cut_usage(ask: Ask) -> Plan:
    """Five tokens and their usage, then the connection is closed."""
    return _begun(ask, counts(ask, 5))


def error_in_stream(ask: Ask) -> Plan:
    """Five tokens, an error, and [DONE]."""
    return _begun(ask, good(ask).error("engine died"), DONE, end=LAST_CHUNK)


def error_in_choice(ask: Ask) -> Plan:
    """The same, with the error inside the choice."""
    error = {"message": "engine died", "code": 502}
    choice = {"index": 0, "delta": {}, "finish_reason": "error", "error": error}
    return _begun(ask, event(choices=[choice]), DONE, end=LAST_CHUNK)


def aborted(ask: Ask) -> Plan:
    """Five tokens, the finish reason `abort`, and [DONE]."""
    return _begun(ask, delta("abort"), DONE, end=LAST_CHUNK)


def refuses_ignore_eos(ask: Ask) -> Plan:
    """An answer that is to go on behind its end token fails."""
    if not ask.request.fields.get("ignore_eos"):
        return steady(ask)
    return _begun(ask, event(error={"message": "unexpected token after end", "code": 500}), DONE)


def failed(ask: Ask, step: str) -> Plan:
    """No byte, and this step of the connection."""
    return failing(Step[step])


def status(ask: Ask, code: int, at_ms: float = 0.0) -> Plan:
    """An error with this status."""
    return failing(whole(code, error_body("no", code)), at_ms=at_ms)


def fails_at_once(ask: Ask) -> Plan:
    """Every second request fails at once; the others wait for 300 ms."""
    return status(ask, 500) if ask.number % 2 else steady(ask, first_ms=300)


def last_silent(ask: Ask) -> Plan:
    """Request 9, the last one, is never answered."""
    return failed(ask, "SILENCE") if ask.number == 9 else steady(ask)


def created(ask: Ask) -> Plan:
    """A correct answer of status 201."""
    return Plan([Move(0.0, CREATED), *steady(ask).moves[1:]])


def finished(ask: Ask, after_ms: float, step: str = "") -> Plan:
    """A complete answer, [DONE] included, whose body ends later, or with a step."""
    answer = good(ask)
    events = paced(answer.tokens)
    events.append((events[-1][0], b"".join(ends(ask, answer)), 0))
    return streamed(events, end=Step[step] if step else LAST_CHUNK, end_after_ms=after_ms)


def heartbeats(ask: Ask) -> Plan:
    """Comments follow [DONE] for three seconds, and no end."""
    answer = good(ask)
    events = paced(answer.tokens)
    last_ms = events[-1][0]
    events.append((last_ms, b"".join(ends(ask, answer)), 0))
    events += [(last_ms + 200.0 * i, b": heartbeat\n\n", 0) for i in range(1, 15)]
    return streamed(events)


def finish_words(ask: Ask, word: str | None) -> Plan:
    """Return an answer with this finish reason in each event, and no other."""
    events = paced([delta(word, content=WORD)] * ask.request.tokens)
    return streamed(events, counts(ask), DONE)


def null_word(ask: Ask) -> Plan:
    """The same with the text "null", and the connection breaks off."""
    events = paced([delta("null", content=WORD)] * ask.request.tokens)
    return streamed(events, end=Step.CLOSE, ok=False)


def closes(ask: Ask) -> Plan:
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


def empty(ask: Ask) -> Plan:
    """No token."""
    return streamed([], delta("stop"), counts(ask, 0), DONE, ok=False)


# -- servers that look better than they serve: a tool is right where the cheat found nothing to take
# hold of, and has noticed it where it is wrong and said so


def cached(ask: Ask) -> Plan:
    """A prompt that came before is answered from a cache of answers."""
    if not ask.before.get(ask.prompt):
        return steady(ask)
    return replace(steady(ask, **FAST), cheats=True)


def recognizes(ask: Ask) -> Plan:
    """A request whose headers name a load generator is answered faster."""
    if not TOOLS.search(ask.request.head):
        return steady(ask)
    return replace(steady(ask, **FAST), cheats=True)


def short(ask: Ask) -> Plan:
    """A quarter of the tokens, and then the end."""
    sent = ask.request.tokens // SHARE
    events = paced([delta(content=WORD)] * sent)
    return replace(streamed(events, delta("stop"), counts(ask, sent), DONE), cheats=True)


def inflated(ask: Ask) -> Plan:
    """A quarter of the tokens; the usage counts all that were asked for."""
    events = paced([delta(content=WORD)] * (ask.request.tokens // SHARE))
    return replace(streamed(events, delta("length"), counts(ask), DONE), cheats=True)


def accepts_all(ask: Ask) -> Plan:
    """Drafts of four tokens are accepted unseen: the text only repeats itself."""
    events = paced([delta(content=" la" * SHARE)] * (ask.request.tokens // SHARE), each=SHARE)
    return replace(streamed(events, *ends(ask, good(ask))), cheats=True)


def worse_under_load(ask: Ask) -> Plan:
    """Alone, an answer has a text; beside others, one word again and again, twice as fast."""
    if not ask.in_flight:
        return steady(ask)
    answer = good(ask, text=" la")
    plan = streamed(paced(answer.tokens, gap_ms=5), *ends(ask, answer))
    return replace(plan, cheats=True)


def early_token(ask: Ask) -> Plan:
    """A blank goes out at once, and the answer begins 300 ms later."""
    answer = good(ask)
    events = [(1.0, delta(content=" "), 1), *paced(answer.tokens[1:], first_ms=300)]
    return replace(streamed(events, *ends(ask, answer)), cheats=True)
