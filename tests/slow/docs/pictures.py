"""The pictures of docs/numbers.md, and the examples that they show; `python -m
tests.slow.docs.pictures` draws them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tests.helpers.source import ROOT
from tests.slow.docs.svg import Drawing

FOLDER = ROOT / "docs" / "pictures"


@dataclass(frozen=True)
class Event:
    """One event of a stream.

    Attributes:
        ms: When it came, from due.
        kind: "reasoning" or "content".
        tokens: How many it brought.
    """

    ms: float
    kind: str = "content"
    tokens: int = 1


# One request: ms from due.
READY, CONNECT, SENT, HEAD, ROLE, FINISH, LAST, CLOSED = 20, 15, 41, 70, 76, 185, 192, 198
EVENTS = (
    Event(100, "reasoning"),
    Event(115, "reasoning"),
    Event(130),
    Event(145),
    Event(175, tokens=3),
)

# The same twelve tokens in 120 ms, as three servers send them.
STREAMS = {
    "one token an event": [Event(10.0 * n) for n in range(1, 13)],
    "three tokens an event (speculative decoding)": [
        Event(30.0 * n, tokens=3) for n in range(1, 5)
    ],
    "one token an event, held back by a proxy": [Event(40.0 * (1 + n // 4)) for n in range(12)],
}

# A server that answers in 20 ms, and stands still for a second; a request every 100 ms is wanted of
# it.
EVERY_S, ANSWER_S, STALL_S, END_S = 0.1, 0.02, (1.0, 2.0), 3.0


def request() -> Drawing:
    """The times of one request, and what is between them."""
    drawing = Drawing(
        780, 412, "The times of one request, from due to closed, and the metrics between them"
    )
    left, scale, axis = 40, 3.5, 120

    def x(ms: float) -> float:
        return left + scale * ms

    drawing.line(left, axis, x(CLOSED) + 8, axis)
    moments = {
        "due": 0,
        "slot free": READY,
        "sent": SENT,
        "headers": HEAD,
        "role chunk": ROLE,
        "finish": FINISH,
    }
    moments |= {"[DONE]": LAST, "closed": CLOSED}
    for name, ms in moments.items():
        drawing.line(x(ms), axis - 6, x(ms), axis + 6)
        drawing.text(x(ms) + 3, axis - 14, name, anchor="start", turn=-40, quiet=True)
    for number, event in enumerate(EVENTS):
        drawing.dot(
            x(event.ms),
            axis,
            3 + 2 * event.tokens,
            "thought" if event.kind == "reasoning" else "token",
        )
        name = {0: "first token", 2: "first of the answer", 4: "last: 3 tokens"}.get(number)
        if name:
            drawing.text(x(event.ms) + 3, axis - 16, name, anchor="start", turn=-40)
    first, answer, last = EVENTS[0].ms, EVENTS[2].ms, EVENTS[-1].ms
    after = sum(event.tokens for event in EVENTS[1:])
    drawing.bracket(x(0), x(READY), 146, "slot")
    drawing.bracket(x(READY), x(READY + CONNECT), 146, "connect")
    drawing.bracket(x(READY + CONNECT), x(SENT), 146, "lag")
    for before, event in pairwise(EVENTS):
        drawing.bracket(x(before.ms), x(event.ms), 146, "ICL")
    rows = (
        (0, first, "TTFT from due"),
        (SENT, first, "TTFT from sent"),
        (0, answer, "TTFO from due"),
        (first, last, f"TPOT x the {after} tokens after the first event"),
        (0, last, "E2EL from due"),
        (SENT, last, "E2EL from sent"),
    )
    for row, (start, end, name) in enumerate(rows):
        drawing.bracket(x(start), x(end), 184 + 36 * row, f"{name}: {end - start:g} ms")
    drawing.dot(x(0), 398, 4, "thought")
    drawing.text(x(0) + 8, 402, "reasoning", anchor="start", quiet=True)
    drawing.dot(x(26), 398, 4, "token")
    drawing.text(x(26) + 8, 402, "answer", anchor="start", quiet=True)
    return drawing


def open_loop() -> list[tuple[float, float]]:
    """When each request was due, and when it was answered, s: each is sent when it is due."""
    due = np.arange(0, END_S, EVERY_S)
    return [(float(at), _answered(float(at))) for at in due]


def closed_loop() -> list[tuple[float, float]]:
    """The same of a client that has one request in flight, and sends the next on the next tenth
    of a second.
    """
    sent, requests = 0.0, []
    while sent < END_S - EVERY_S / 2:
        requests.append((sent, _answered(sent)))
        sent = EVERY_S * np.ceil(requests[-1][1] / EVERY_S - 1e-9)
    return [(float(start), float(end)) for start, end in requests]


def percentile_ms(requests: list[tuple[float, float]], p: float) -> float:
    """A percentile of their latencies."""
    return float(np.percentile([1000 * (end - start) for start, end in requests], p))


def loops() -> Drawing:
    """The same stall, seen by an open loop and by a closed one."""
    drawing = Drawing(
        780, 266, "A stall of one second, measured by an open loop and by a closed loop"
    )
    panels = (
        ("open loop: sent when due", open_loop()),
        ("closed loop: sent when the last is answered", closed_loop()),
    )
    for panel, (name, requests) in enumerate(panels):
        left, top, scale, row = 20 + 385 * panel, 40, 115, 6

        def x(s: float, left: int = left, scale: int = scale) -> float:
            return left + scale * s

        drawing.text(left, 24, name, anchor="start")
        drawing.box(x(STALL_S[0]), top, scale * (STALL_S[1] - STALL_S[0]), row * 30, "stall")
        drawing.text(x(sum(STALL_S) / 2), top + row * 30 - 6, "the server stalls", quiet=True)
        for start, end in requests:
            kind = "late" if end - start > 2 * ANSWER_S else "good"
            drawing.box(
                x(start),
                top + row * round(start / EVERY_S),
                max(scale * (end - start), 3),
                row - 2,
                kind,
            )
        p50, p90 = (percentile_ms(requests, p) for p in (50, 90))
        said = f"{len(requests)} requests: p50 {p50:.0f} ms, p90 {p90:.0f} ms"
        drawing.text(left, top + row * 30 + 22, said, anchor="start")
    drawing.text(
        20,
        256,
        "one bar a request, from due (sent) to answered; 3 s from left to right",
        anchor="start",
        quiet=True,
    )
    return drawing


def chunks() -> Drawing:
    """The same tokens in other events."""
    drawing = Drawing(780, 240, "Twelve tokens in 120 ms, as three servers send them")
    left, scale = 40, 5.6
    for number, (name, events) in enumerate(STREAMS.items()):
        y = 50 + 66 * number
        drawing.text(left, y - 30, name, anchor="start")
        drawing.line(left, y, left + scale * 122, y)
        seen: dict[float, int] = {}
        for event in events:
            for _ in range(event.tokens):
                above = seen.get(event.ms, 0)
                drawing.dot(left + scale * event.ms, y - 7 * above, 4, "token")
                seen[event.ms] = above + 1
    for ms in range(0, 121, 20):
        drawing.text(left + scale * ms, 220, f"{ms} ms", quiet=True)
    return drawing


PICTURES: dict[str, Callable[[], Drawing]] = {"request": request, "loops": loops, "chunks": chunks}


def _answered(start: float) -> float:
    """When a request is answered that came then."""
    held = STALL_S[0] - ANSWER_S < start < STALL_S[1]
    return (STALL_S[1] if held else start) + ANSWER_S


def main() -> None:
    """Draw them all."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(str(draw()))


if __name__ == "__main__":
    main()
