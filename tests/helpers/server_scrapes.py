"""Makes what servers said of a run: scrapes at seconds after the run's clock started, and what
they come to.
"""

from typing import Any

from msgspec import structs

from loadgen.metrics.server.parser import Reading
from loadgen.metrics.server.series import FIRST, LAST, TICK, PromHistogram, Scrape, SourceSeries
from loadgen.metrics.server.telemetry import Telemetry
from tests.helpers.run_facts import START

URL = "http://127.0.0.1:8000/metrics"
TARGET = "http://127.0.0.1:8000"


def scrape(
    at_s: float,
    moment: str = TICK,
    *,
    ttft: PromHistogram | None = None,
    failed: str | None = None,
    url: str = URL,
    took_ms: float = 2.0,
    **values: float,
) -> Scrape:
    """One answer; names are those of vLLM, as far as a test can tell."""
    asked_ns = START + round(at_s * 1e9)
    names = {quantity: f"vllm:{quantity}" for quantity in values} | (
        {"ttft": "vllm:ttft"} if ttft else {}
    )
    reading = Reading(dict(values), names, ttft)
    answered_ns = asked_ns + round(took_ms * 1e6)
    facts: dict[str, Any] = {} if failed else structs.asdict(reading)
    return Scrape(
        url=url,
        target=TARGET,
        moment=moment,
        asked_ns=asked_ns,
        answered_ns=answered_ns,
        failed=failed,
        **facts,
    )


def scraped(*scrapes: Scrape) -> SourceSeries:
    """What one source said."""
    return SourceSeries.of(list(scrapes), START)


def telemetry(
    before: dict[str, Any], after: dict[str, Any], *between: dict[str, Any], took_ms: float = 2.0
) -> Telemetry:
    """What a server said before a run, after it, and every second in between."""
    ticks = [scrape(second, took_ms=took_ms, **values) for second, values in enumerate(between, 1)]
    last = scrape(len(between) + 1, LAST, took_ms=took_ms, **after)
    return Telemetry((scraped(scrape(-0.1, FIRST, took_ms=took_ms, **before), *ticks, last),))
