"""Plays: correct answers, in all forms. A case names its play, and the numbers of it."""

from dataclasses import replace
from typing import Any

from loadgen.lab.judge.case import (
    FIRST_MS,
    GAP_MS,
    WORD,
    Ask,
    Event,
    Plan,
    delta,
    ends,
    event,
    good,
    paced,
    steady,
    streamed,
    usage,
)
from loadgen.testing.replies import DONE

# -- when tokens come


def _events_at(ask: Ask, times_ms: list[float]) -> Plan:
    """Return a correct answer whose tokens are due at these times."""
    answer = good(ask)
    events = [(at, token, 1) for at, token in zip(times_ms, answer.tokens, strict=True)]
    events.insert(0, (times_ms[0], answer.role, 0))
    return streamed(events, *ends(ask, answer))


def role_first(ask: Ask) -> Plan:
    """The role comes at once, the first token much later."""
    answer = good(ask)
    return streamed(
        [(0.0, answer.role, 0), *paced(answer.tokens, first_ms=200)], *ends(ask, answer)
    )


def uneven(ask: Ask) -> Plan:
    """Gaps of 2 and 30 ms in turn."""
    gaps = [2.0 if i % 2 else 30.0 for i in range(ask.request.tokens - 1)]
    return _events_at(ask, [FIRST_MS + sum(gaps[:i]) for i in range(ask.request.tokens)])


def paused(ask: Ask) -> Plan:
    """A pause of 300 ms in the middle."""
    middle = ask.request.tokens // 2
    return _events_at(
        ask,
        [FIRST_MS + i * GAP_MS + (300 if i >= middle else 0) for i in range(ask.request.tokens)],
    )


def one_write(ask: Ask) -> Plan:
    """All of the answer in one write."""
    answer = good(ask)
    body = b"".join([answer.role, *answer.tokens, *ends(ask, answer)])
    return streamed([(200.0, body, len(answer.tokens))])


def clumps(ask: Ask) -> Plan:
    """A token is made each 10 ms; a gateway lets ten go at a time."""
    answer = good(ask)
    size = 10
    groups = [answer.tokens[i : i + size] for i in range(0, len(answer.tokens), size)]
    events = [
        (FIRST_MS + (i + 1) * size * GAP_MS, b"".join(g), len(g)) for i, g in enumerate(groups)
    ]
    return streamed(events, *ends(ask, answer))


def byte_writes(ask: Ask) -> Plan:
    """Each event in two writes, cut inside its JSON; the second one completes it."""
    answer = good(ask)
    events = []
    for at_ms, data, tokens in paced(answer.tokens, gap_ms=20):
        events += [(at_ms - 5, data[:9], 0), (at_ms, data[9:], tokens)]
    return streamed(events, *ends(ask, answer))


def late_usage(ask: Ask) -> Plan:
    """The usage and the end come 200 ms after the last token and the finish reason."""
    answer = good(ask)
    events = paced(answer.tokens)
    events.append((events[-1][0], answer.finish, 0))
    return streamed(events, answer.usage, answer.done, end_after_ms=200)


def stall(ask: Ask) -> Plan:
    """Requests 20 to 39 wait for 800 ms."""
    return steady(ask, first_ms=800 if 20 <= ask.number < 40 else 20, gap_ms=5)


def one_slow(ask: Ask) -> Plan:
    """The third answer begins after 600 ms, the others after 50 ms."""
    return steady(ask, first_ms=600 if ask.number == 2 else 50)


def different_lengths(ask: Ask) -> Plan:
    """Answers with an odd number have gaps of 40 ms, the others of 5 ms."""
    return steady(ask, gap_ms=40 if ask.number % 2 else 5)


def slow_last(ask: Ask) -> Plan:
    """Answer 39, the last one, has gaps of 100 ms, the others of 5 ms."""
    return steady(ask, gap_ms=100 if ask.number == 39 else 5)


# -- what an event bears, and what the usage says


def counts(ask: Ask, completion: int | None = None, **more: Any) -> bytes:
    """Return an event of usage; the completion has the tokens that were asked for."""
    completion = ask.request.tokens if completion is None else completion
    total = ask.prompt_tokens + completion
    fields = {"prompt_tokens": ask.prompt_tokens, "completion_tokens": completion}
    return usage(**(fields | {"total_tokens": total} | more))


def _words(ask: Ask, **fields: Any) -> list[Event]:
    """Return one event for each token asked for, with these fields or a content."""
    return paced([delta(**(fields or {"content": WORD}))] * ask.request.tokens)


def several(ask: Ask, each: int, *, with_usage: bool = True) -> Plan:
    """Return an answer with several tokens in each event."""
    answer = good(ask)
    count = ask.request.tokens // each
    events = paced([delta(content=WORD * each)] * count, gap_ms=30, each=each)
    closing = ends(ask, answer) if with_usage else [answer.uncounted, DONE]
    return streamed(events, *closing)


def no_usage(ask: Ask) -> Plan:
    """A token in each event, and no counts."""
    answer = good(ask)
    return streamed(paced(answer.tokens), answer.uncounted, answer.done)


def silent(ask: Ask, every: int, start: int) -> Plan:
    """Return an answer in which tokens from `start` on, each `every`th, have no text."""
    texts = ["" if i >= start and i % every == 0 else WORD for i in range(ask.request.tokens)]
    return streamed(paced([delta(content=text) for text in texts]), *ends(ask, good(ask)))


def reasoning(ask: Ask, **fields: Any) -> Plan:
    """Return an answer whose first half is reasoning in these fields."""
    half = ask.request.tokens // 2
    events = [delta(**fields)] * half + [delta(content=WORD)] * (ask.request.tokens - half)
    counted = counts(ask, completion_tokens_details={"reasoning_tokens": half})
    return streamed(paced(events), delta("length"), counted, DONE)


def hidden_reasoning(ask: Ask) -> Plan:
    """40 tokens of reasoning are counted and not sent."""
    total = ask.request.tokens + 40
    counted = counts(ask, total, completion_tokens_details={"reasoning_tokens": 40})
    return streamed(_words(ask), delta("stop"), counted, DONE, unseen=40)


def reasoning_beside(ask: Ask) -> Plan:
    """Reasoning is streamed, and counted beside the completion, as xAI does."""
    half = ask.request.tokens // 2
    events = [delta(reasoning_content=WORD)] * half
    events += [delta(content=WORD)] * (ask.request.tokens - half)
    counted = counts(
        ask,
        ask.request.tokens - half,
        total_tokens=ask.prompt_tokens + ask.request.tokens,
        completion_tokens_details={"reasoning_tokens": half},
    )
    return streamed(paced(events), delta("stop"), counted, DONE)


def repeated(ask: Ask) -> Plan:
    """The last event repeats the whole answer."""
    events = _words(ask)
    events.append((events[-1][0], delta("stop", content=WORD * ask.request.tokens), 0))
    return streamed(events, counts(ask), DONE)


def twice(ask: Ask) -> Plan:
    """Each token comes in two equal events."""
    events = []
    for at_ms, data, tokens in _words(ask, reasoning_content=WORD):
        events += [(at_ms, data, tokens), (at_ms, data, 0)]
    return streamed(events, delta("stop"), counts(ask), DONE)


def in_message(ask: Ask) -> Plan:
    """The last event has the whole answer as a `message`."""
    message = {"role": "assistant", "content": WORD * ask.request.tokens}
    last = event(choices=[{"index": 0, "message": message, "finish_reason": "stop"}])
    return streamed(_words(ask), last, counts(ask), DONE)


def annotations(ask: Ask) -> Plan:
    """Between the tokens stand choices without a delta, as Azure's content filter sends them."""
    safe = {"hate": {"filtered": False, "severity": "safe"}}
    choice = {"index": 0, "finish_reason": None, "content_filter_results": safe}
    note = event(id="", object="", choices=[choice])
    events: list[Event] = [(0.0, event(choices=[], prompt_filter_results=[safe]), 0)]
    for number, one in enumerate(_words(ask)):
        events += [one, (one[0], note, 0)] if number % 7 == 3 else [one]
    return streamed(events, delta("stop"), note, counts(ask), DONE)


def usage_with_finish(ask: Ask) -> Plan:
    """The usage stands in the event with the finish reason."""
    choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
    total = {"prompt_tokens": ask.prompt_tokens, "completion_tokens": ask.request.tokens}
    return streamed(_words(ask), event(choices=[choice], usage=total), DONE)


def half_usage(ask: Ask) -> Plan:
    """The usage has no completion."""
    return streamed(_words(ask), delta("stop"), usage(prompt_tokens=ask.prompt_tokens), DONE)


def zero_usage(ask: Ask) -> Plan:
    """The usage has zeros."""
    zeros = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), 0)
    return streamed(_words(ask), delta("stop"), usage(**zeros), DONE)


def small_usage(ask: Ask) -> Plan:
    """The usage counts half of the tokens."""
    return streamed(_words(ask), delta("stop"), counts(ask, ask.request.tokens // 2), DONE)


def early(ask: Ask) -> Plan:
    """Five tokens, then an end token."""
    return streamed(_words(ask)[:5], delta("stop"), counts(ask, 5), DONE)


def tools(ask: Ask) -> Plan:
    """Every token is a part of a tool call; the content is null."""
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": WORD}}
    events = _words(ask, content=None, tool_calls=[call])
    return streamed(events, delta("tool_calls"), counts(ask), DONE)


def template(ask: Ask) -> Plan:
    """The usage counts 10 tokens more than the text has: those of a chat template."""
    answer = good(ask)
    closing = usage(prompt_tokens=ask.prompt_tokens + 10, completion_tokens=ask.request.tokens)
    plan = streamed(paced(answer.tokens), answer.finish, closing, answer.done)
    return replace(plan, more_input=10)


# -- the form of a stream


def written(ask: Ask, before: str = "", old: str = "", new: str = "") -> Plan:
    """Return a correct answer, each of whose events has a text before it, or another in it."""

    def change(data: bytes) -> bytes:
        return before.encode() + (data.replace(old.encode(), new.encode()) if old else data)

    answer = good(ask)
    events = [(at, change(data), n) for at, data, n in paced(answer.tokens)]
    return streamed(events, *map(change, ends(ask, answer)))


def split_utf8(ask: Ask) -> Plan:
    """Each token is cut inside a character, whose rest comes with the next write."""
    word = " é".encode()
    events = []
    for at_ms, data, tokens in paced([delta(content=" é")] * ask.request.tokens, gap_ms=20):
        cut = data.index(word) + len(word) - 1
        events += [(at_ms - 5, data[:cut], 0), (at_ms, data[cut:], tokens)]
    return streamed(events, *ends(ask, good(ask)))


def no_blank_line(ask: Ask) -> Plan:
    """The last event, [DONE], has no blank line behind it."""
    answer = good(ask)
    *closing, done = ends(ask, answer)
    return streamed(paced(answer.tokens), *closing, done.rstrip(b"\n") + b"\n")


def long_event(ask: Ask) -> Plan:
    """One event has 200 kB beside its token."""
    events = [delta(content=WORD)] * ask.request.tokens
    events[0] = delta(content=WORD, extra="x" * 200_000)
    return streamed(paced(events), *ends(ask, good(ask)))
