"""Case: one server, what a tool is told to send to it, and which of its figures are judged."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from loadgen.engines.sim.http1 import LAST_CHUNK, Request, chunk
from loadgen.testing import replies
from loadgen.testing.faults import Step
from loadgen.testing.faulty import MODEL
from loadgen.testing.replies import STREAM, GoodAnswer

FIRST_MS, GAP_MS = 50.0, 10.0
WORD = " word"  # one token of the judge's tokenizer, also where many follow each other


class Move(NamedTuple):
    """One step of an answer.

    Attributes:
        at_ms: When it is due, after the arrival of the request.
        step: Bytes of one write, or a step of the fault kit.
        tokens: The tokens that a client can see in this write.
    """

    at_ms: float
    step: bytes | Step
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer to one request.

    Attributes:
        moves: Its steps, in the order of their times.
        ok: Whether a client that gets all of it has a complete answer.
        unseen: Tokens that were generated and are in no event, as hidden reasoning.
        more_input: Input tokens that the server counts beside those of the prompt's text.
        cheats: Whether it is better than what the server can do.
    """

    moves: Sequence[Move]
    ok: bool = True
    unseen: int = 0
    more_input: int = 0
    cheats: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """A request as a case sees it.

    Attributes:
        request: The request.
        number: How many came before.
        prompt: Its text.
        prompt_tokens: Of that, by the judge's tokenizer.
        before: How often each prompt came before.
        in_flight: How many other requests are being answered.
    """

    request: Request
    number: int
    prompt: str
    prompt_tokens: int
    before: Mapping[str, int]
    in_flight: int = 0


Play = Callable[[Ask], Plan]


class Disturbance(StrEnum):
    """What happens to the client meanwhile."""

    NONE = ""
    STOPPED = "stopped"  # all its processes, for 200 ms
    BUSY = "busy"  # a process on each core that does nothing but count


@dataclass(frozen=True, slots=True)
class Load:
    """What a tool is told to send.

    Attributes:
        count: Requests.
        rate: Requests per second; infinite: all at once, or as `streams` allows.
        streams: The most in flight; None: no limit.
        input_tokens, output_tokens: Of each request, as asked.
    """

    count: int = 10
    rate: float = 10.0
    streams: int | None = None
    input_tokens: int = 32
    output_tokens: int = 20


@dataclass(frozen=True, slots=True)
class Case:
    """An entry of the table.

    Attributes:
        name: As `--case` names it.
        group: time, tokens, load, prompts, ends, report or cheats.
        does: What the server does, in one sentence.
        source: Thread, standard or paper where it went wrong, or is defined.
        play: Returns the answer to a request.
        figures: The figures that are judged.
        load: What the tool is told to send.
        chat: Whether the answer has events of chat completions alone.
        host: The server's name in the tool's URL.
        disturbance: What happens to the client meanwhile.
        threads: Requests that are answered at a time, each connection holding its place while it
            is open; 0: all.
        limit_s: When a tool that has not ended is stopped, from its first request on.
    """

    name: str
    group: str
    does: str
    source: str
    play: Play
    figures: tuple[str, ...]
    load: Load = field(default_factory=Load)
    chat: bool = False
    host: str = "127.0.0.1"
    disturbance: Disturbance = Disturbance.NONE
    threads: int = 0
    limit_s: float = 60.0


def event(**fields: Any) -> bytes:
    """Return an event of a chat completion with all fields that its standard requires."""
    return replies.event(
        **{"id": "x", "object": "chat.completion.chunk", "created": 1, "model": MODEL} | fields
    )


def delta(finish_reason: str | None = None, **fields: Any) -> bytes:
    """Return such an event; the delta of its only choice has `fields`."""
    return event(choices=[{"index": 0, "delta": fields, "finish_reason": finish_reason}])


def usage(**counts: Any) -> bytes:
    """Return such an event with token counts and without a choice."""
    return event(choices=[], usage=counts)


Event = tuple[float, bytes, int]  # when it is due, its bytes, the tokens that it shows


def paced(
    events: Iterable[bytes], *, first_ms: float = FIRST_MS, gap_ms: float = GAP_MS, each: int = 1
) -> list[Event]:
    """Return events with `each` tokens, one after the other."""
    return [(first_ms + i * gap_ms, event, each) for i, event in enumerate(events)]


def streamed(
    events: Sequence[Event],
    *ends: bytes,
    head: bytes = STREAM,
    end: bytes | Step = LAST_CHUNK,
    ok: bool = True,
    unseen: int = 0,
    end_after_ms: float = 0.0,
) -> Plan:
    """Return the plan of a stream: a write for each event, and the end.

    Args:
        events: With their times; an empty one, as the role of a completion, is left out.
        ends: Events without tokens behind them, in one write.
        head: Of the response.
        end: What closes the body.
        ok: Whether it is a complete answer.
        unseen: Tokens in no event.
        end_after_ms: How long after the last event `ends` and `end` follow.
    """
    last_ms = max((at for at, *_ in events), default=0.0) + end_after_ms
    moves = [
        Move(0.0, head),
        *(Move(at, chunk(data), tokens) for at, data, tokens in events if data),
    ]
    closing = b"".join(map(chunk, ends))
    if isinstance(end, bytes):
        moves.append(Move(last_ms, closing + end))
    else:
        moves += [Move(last_ms, closing)] * bool(closing) + [Move(last_ms, end)]
    return Plan(moves, ok, unseen)


def good(ask: Ask, *, tokens: int | None = None, text: str = WORD) -> GoodAnswer:
    """Return the correct answer to a request, all of whose tokens have the same text.

    Args:
        ask: The request.
        tokens: How many are written, where these are fewer than its usage counts.
        text: Of each token.
    """
    answer = GoodAnswer.to(ask.request, text, ask.prompt_tokens)
    if tokens is not None:
        answer.tokens[tokens:] = []
    return answer


def ends(ask: Ask, answer: GoodAnswer) -> list[bytes]:
    """Return the events behind the last token."""
    return [answer.finish, *([answer.usage] if ask.request.wants_usage else []), answer.done]


def steady(
    ask: Ask, *, first_ms: float = FIRST_MS, gap_ms: float = GAP_MS, end_after_ms: float = 0.0
) -> Plan:
    """Return a correct answer: the role with the first token, then a token in each write."""
    answer = good(ask)
    events = [(first_ms, answer.role, 0), *paced(answer.tokens, first_ms=first_ms, gap_ms=gap_ms)]
    return streamed(events, *ends(ask, answer), end_after_ms=end_after_ms)


def failing(*steps: bytes | Step, at_ms: float = 0.0) -> Plan:
    """Return an answer that is a failure."""
    return Plan([Move(at_ms, step) for step in steps], ok=False)
