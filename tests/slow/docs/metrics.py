"""What loadgen makes of the streams that docs/numbers.md shows, as the tables of that page.

`python -m tests.slow.docs.metrics` draws the pictures and writes the tables again.
"""

from collections.abc import Sequence

from loadgen.core.http1 import Response
from loadgen.core.record import Record
from loadgen.engines.sim.http1 import LAST_CHUNK, chunk
from loadgen.metrics.recorder import Recorder
from loadgen.testing.replies import STREAM as HEADERS
from loadgen.testing.replies import delta, event, usage
from loadgen.util.number_format import to_ms
from tests.helpers.documents import between, table
from tests.helpers.run_facts import START, at, planned
from tests.helpers.source import ROOT
from tests.slow.docs import pictures
from tests.slow.docs.pictures import (
    CONNECT,
    EVENTS,
    FINISH,
    HEAD,
    LAST,
    READY,
    ROLE,
    SENT,
    STREAMS,
    Event,
)

PAGE = ROOT / "docs" / "numbers.md"
END = "<!-- end of numbers -->"
OF_ONE = "<!-- numbers of one request: written by python -m tests.slow.docs.metrics -->"
OF_STREAMS = "<!-- numbers of three streams: written by python -m tests.slow.docs.metrics -->"


def record(events: Sequence[Event], *, sent: float = 0, head: float = 0, role: float = 0) -> Record:
    """A request whose answer came so, the tokens of each event told by its usage."""
    tokens = sum(one.tokens for one in events)
    begun = planned(
        tokens=(10, tokens), ready=READY if sent else 0, connect=CONNECT if sent else 0, sent=sent
    )
    response = Response()
    response.begin(begun)
    response.feed(HEADERS, at(head))
    response.feed(chunk(delta(role="assistant")), at(role))
    so_far = 0
    for one in events:
        so_far += one.tokens
        said = {"reasoning": "x"} if one.kind == "reasoning" else {"content": "x"}
        choices = [{"index": 0, "delta": said}]
        response.feed(
            chunk(event(choices=choices, usage={"completion_tokens": so_far})), at(one.ms)
        )
    end = events[-1].ms
    response.feed(chunk(delta("stop")), at(max(end, FINISH if sent else end)))
    response.feed(
        chunk(usage(completion_tokens=tokens)) + LAST_CHUNK, at(max(end, LAST if sent else end))
    )
    return begun


def recorded(answered: Record) -> Recorder:
    """What is kept of a run of that request alone."""
    recorder = Recorder(START, 1)
    recorder.add(answered)
    return recorder


def of_one() -> str:
    """The metrics of the one request of the picture, ms."""
    kept = recorded(record(EVENTS, sent=SENT, head=HEAD, role=ROLE)).snapshot().histograms
    rows = [
        ("Wait for a slot", _ms(kept["pool_wait"].mean)),
        ("Connect", _ms(kept["connect"].mean)),
        ("Lag", _ms(kept["lag"].mean)),
        *((f"{name.upper()} from due, from sent", f"{_ms(kept[f'{name}_due'].mean)}, "
                                                  f"{_ms(kept[f'{name}_sent'].mean)}")
          for name in ("ttft", "ttfo", "e2el")),
        ("TPOT", _ms(kept["tpot"].mean)),
        ("ICL: mean, max", f"{_ms(kept['icl'].mean)}, {_ms(kept['icl'].max)}"),
        ("ITL: mean, max", f"{_ms(kept['itl'].mean)}, {_ms(kept['itl'].max)}"),
    ]  # fmt: skip
    return table(("metric", "ms"), rows)


def of_streams() -> str:
    """The metrics of the same tokens in other events, ms."""
    rows = []
    for name, events in STREAMS.items():
        kept = recorded(record(events)).snapshot().histograms
        cells = [_ms(kept["tpot"].mean)]
        for gap in ("icl", "itl"):
            cells += [_ms(kept[gap].percentile(p)) for p in (50, 99)]
        rows.append((name, *cells))
    return table(
        ("the same twelve tokens", "TPOT", "ICL p50", "ICL p99", "ITL p50", "ITL p99"), rows
    )


def _ms(ns: float | None) -> str:
    """Milliseconds to a tenth: a histogram has three digits of a value."""
    shown = to_ms(ns)
    return "n/a" if shown is None else f"{shown:.1f}".removesuffix(".0")


def main() -> None:
    """Draw the pictures and write the tables."""
    pictures.main()
    between(PAGE, OF_ONE, of_one(), END)
    between(PAGE, OF_STREAMS, of_streams(), END)


if __name__ == "__main__":
    main()
