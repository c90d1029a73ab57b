"""Cases of tokens: what an event bears, and what the usage says."""

from typing import Any

from loadgen.lab.judge.case import (
    WORD,
    Ask,
    Case,
    Event,
    Load,
    Plan,
    Play,
    add,
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

COUNTS = ("completed", "output_tokens", "ttft_mean_ms", "tpot_mean_ms")


def _tokens(
    name: str,
    does: str,
    source: str,
    play: Play,
    figures: tuple[str, ...] = COUNTS,
    *,
    chat: bool = True,
) -> None:
    add(Case(name, "tokens", does, source, play, figures, Load(), chat=chat))


def counts(ask: Ask, completion: int | None = None, **more: Any) -> bytes:
    """Return an event of usage; the completion has the tokens that were asked for."""
    completion = ask.request.tokens if completion is None else completion
    total = ask.prompt_tokens + completion
    fields = {"prompt_tokens": ask.prompt_tokens, "completion_tokens": completion}
    return usage(**(fields | {"total_tokens": total} | more))


def deltas(ask: Ask, *kinds: dict[str, Any]) -> list[Event]:
    """Return one event for each token asked for, with these deltas in turn."""
    return paced([delta(**kinds[i % len(kinds)]) for i in range(ask.request.tokens)])


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
    answer = good(ask)
    texts = ["" if i >= start and i % every == 0 else WORD for i in range(ask.request.tokens)]
    return streamed(paced([delta(content=text) for text in texts]), *ends(ask, answer))


def reasoning(ask: Ask, *fields: dict[str, Any]) -> Plan:
    """Return an answer whose first half is reasoning in these fields."""
    half = ask.request.tokens // 2
    thoughts = [delta(**fields[i % len(fields)]) for i in range(half)]
    words = [delta(content=WORD)] * (ask.request.tokens - half)
    details = {"reasoning_tokens": half}
    counted = counts(ask, completion_tokens_details=details)
    return streamed(paced(thoughts + words), delta("length"), counted, DONE)


def hidden_reasoning(ask: Ask) -> Plan:
    """40 tokens of reasoning are counted and not sent."""
    total = ask.request.tokens + 40
    counted = counts(ask, total, completion_tokens_details={"reasoning_tokens": 40})
    events = deltas(ask, {"content": WORD})
    closing = (delta("stop"), counted, DONE)
    return streamed(events, *closing, unseen=40)


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
    events = deltas(ask, {"content": WORD})
    events.append((events[-1][0], delta("stop", content=WORD * ask.request.tokens), 0))
    return streamed(events, counts(ask), DONE)


def twice(ask: Ask) -> Plan:
    """Each token comes in two equal events."""
    events = []
    for at_ms, data, tokens in deltas(ask, {"reasoning_content": WORD}):
        events += [(at_ms, data, tokens), (at_ms, data, 0)]
    return streamed(events, delta("stop"), counts(ask), DONE)


def in_message(ask: Ask) -> Plan:
    """The last event has the whole answer as a `message`."""
    message = {"role": "assistant", "content": WORD * ask.request.tokens}
    last = event(choices=[{"index": 0, "message": message, "finish_reason": "stop"}])
    return streamed(deltas(ask, {"content": WORD}), last, counts(ask), DONE)


def annotations(ask: Ask) -> Plan:
    """Between the tokens stand choices without a delta, as Azure's content filter sends them."""
    safe = {"hate": {"filtered": False, "severity": "safe"}}
    note = event(
        id="",
        object="",
        choices=[{"index": 0, "finish_reason": None, "content_filter_results": safe}],
    )
    events: list[Event] = [(0.0, event(choices=[], prompt_filter_results=[safe]), 0)]
    for number, one in enumerate(deltas(ask, {"content": WORD})):
        events += [one, (one[0], note, 0)] if number % 7 == 3 else [one]
    return streamed(events, delta("stop"), note, counts(ask), DONE)


def usage_with_finish(ask: Ask) -> Plan:
    """The usage stands in the event with the finish reason."""
    choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
    total = {"prompt_tokens": ask.prompt_tokens, "completion_tokens": ask.request.tokens}
    last = event(choices=[choice], usage=total)
    return streamed(deltas(ask, {"content": WORD}), last, DONE)


def ended(ask: Ask, *closing: bytes, texts: str = WORD) -> Plan:
    """Return an answer with these events behind its tokens."""
    return streamed(deltas(ask, {"content": texts}), delta("stop"), *closing, DONE)


def early(ask: Ask) -> Plan:
    """Five tokens, then an end token."""
    events = deltas(ask, {"content": WORD})[:5]
    return streamed(events, delta("stop"), counts(ask, 5), DONE)


def tools(ask: Ask) -> Plan:
    """Every token is a part of a tool call; the content is null."""
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": WORD}}
    events = deltas(ask, {"content": None, "tool_calls": [call]})
    return streamed(events, delta("tool_calls"), counts(ask), DONE)


_tokens(
    "four-per-event",
    "Four tokens in each event, 30 ms apart.",
    "vllm#46652, inference-perf#410 (D6)",
    lambda ask: several(ask, 4),
)
_tokens(
    "four-per-event-no-usage",
    "Four tokens in each event, and no usage.",
    "guidellm#743 (D42, dialect 24)",
    lambda ask: several(ask, 4, with_usage=False),
)
_tokens(
    "no-usage", "No usage, a token in each event.", "inference-perf#564 (D7)", no_usage, chat=False
)
_tokens(
    "silent-tail",
    "The last half of the tokens has no text.",
    "ggml-org/llama.cpp#7106 (dialect 23)",
    lambda ask: silent(ask, 1, ask.request.tokens // 2),
)
_tokens(
    "silent-every-second",
    "Every second token has no text.",
    "openvinotoolkit/model_server#4020 (dialect 23)",
    lambda ask: silent(ask, 2, 1),
)
_tokens(
    "silent-all",
    "No token has text.",
    "sglang#40555 (dialect 23)",
    lambda ask: silent(ask, 1, 0),
    ("completed", "output_tokens"),
)
_tokens(
    "reasoning-content",
    "The first half is `reasoning_content`.",
    "guidellm#835 (D15)",
    lambda ask: reasoning(ask, {"reasoning_content": WORD}),
)
_tokens(
    "reasoning",
    "The first half is `reasoning`.",
    "guidellm#760 (D15)",
    lambda ask: reasoning(ask, {"reasoning": WORD}),
)
_tokens(
    "reasoning-details",
    "The first half is `reasoning_details`.",
    "evalscope#1700 (dialect 02)",
    lambda ask: reasoning(
        ask, {"reasoning_details": [{"type": "reasoning.text", "text": WORD}], "content": ""}
    ),
)
_tokens(
    "thinking",
    "The first half is `thinking`.",
    "a form of dialect 02",
    lambda ask: reasoning(ask, {"thinking": WORD}),
)
_tokens(
    "hidden-reasoning",
    "40 tokens of reasoning are counted and never sent.",
    "tugot17/tokenomics#16 (D15)",
    hidden_reasoning,
    ("completed", "output_tokens", "ttft_mean_ms"),
)
_tokens(
    "reasoning-beside",
    "Counts reasoning beside the completion, as xAI does.",
    "dialect 03",
    reasoning_beside,
)
_tokens(
    "tool-calls", "Tokens are parts of tool calls, content null.", "evalscope#1591 (D43)", tools
)
_tokens("deltas-twice", "Sends each event twice.", "maximhq/bifrost#6427 (dialect 09)", twice)
_tokens(
    "repeats-all",
    "The last event repeats the whole answer.",
    "infiniflow/ragflow#15286 (dialect 21)",
    repeated,
)
_tokens(
    "in-message",
    "The last event has the whole answer as a `message`.",
    "NousResearch/hermes-agent#11 (dialect 21)",
    in_message,
)
_tokens(
    "annotations",
    "Sends choices without a delta between the tokens.",
    "spring-ai#7014 (dialect 11)",
    annotations,
)
_tokens(
    "usage-with-finish",
    "The usage is in the event with the finish reason.",
    "evalscope#1572 (D16)",
    usage_with_finish,
)
_tokens(
    "usage-partial",
    "The usage has no completion tokens.",
    "evalscope#1432 (D17)",
    lambda ask: ended(ask, usage(prompt_tokens=ask.prompt_tokens)),
    (*COUNTS, "input_tokens"),
)
_tokens(
    "usage-zero",
    "The usage has zeros.",
    "dialect 10",
    lambda ask: ended(ask, usage(prompt_tokens=0, completion_tokens=0, total_tokens=0)),
    (*COUNTS, "input_tokens"),
)
_tokens(
    "usage-too-small",
    "The usage counts half of the tokens that were sent.",
    "dialect 24, sglang#30304",
    lambda ask: ended(ask, counts(ask, ask.request.tokens // 2)),
)
_tokens(
    "stops-early",
    "Stops after 5 of 20 tokens.",
    "sglang stream_metrics.py (D41)",
    early,
    (*COUNTS, "e2el_mean_ms"),
)
_tokens(
    "steady-counts",
    "Answers as asked.",
    "control of counts",
    steady,
    (*COUNTS, "input_tokens"),
    chat=False,
)
