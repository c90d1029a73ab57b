"""Rules: each yields what it finds wrong; of one result, or of a page as a whole."""

from collections.abc import Callable, Iterator

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.published import Published
from loadgen.analysis.audit.rules import cells, concurrency, gains, identity, noise, results, treatments, work
from loadgen.analysis.audit.rules.latencies import latencies
from loadgen.analysis.audit.rules.rates import rates
from loadgen.analysis.audit.rules.streams import itl, tpot
from loadgen.analysis.audit.rules.verdict import verdict
from loadgen.analysis.audit.study import Study

OF_RESULTS: tuple[Callable[[Published], Iterator[Finding]], ...] = (
    rates,
    concurrency.peak_throughput,
    concurrency.peak_concurrency,
    concurrency.in_flight,
    latencies,
    tpot,
    itl,
    verdict,
)
OF_PAGES: tuple[Callable[[Study], Iterator[Finding]], ...] = (
    identity.models,
    identity.hardware,
    cells.copied,
    cells.percents,
    cells.hidden,
    cells.success_rates,
    results.lines,
    results.summaries,
    gains.gains,
    gains.rows,
    gains.incumbents,
    treatments.recommended,
    treatments.baselines,
    treatments.combinations,
    treatments.duplicates,
    treatments.unreported,
    work.asked,
    work.failures,
    noise.noise,
)
