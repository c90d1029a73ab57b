"""Rules: each yields what it finds wrong; of one result, of a page as a whole, or of several
files.
"""

from collections.abc import Callable

from loadgen.lab.audit.finding import Findings
from loadgen.lab.audit.published import Published
from loadgen.lab.audit.rules import (
    bases,
    cells,
    claims,
    gains,
    identity,
    loads,
    rates,
    results,
    streams,
    treatments,
)
from loadgen.lab.audit.study import PublishedStudy

OF_RESULTS: tuple[Callable[[Published], Findings], ...] = (
    rates.rates,
    rates.peak_throughput,
    rates.peak_concurrency,
    rates.in_flight,
    streams.latencies,
    streams.tpot,
    streams.itl,
    rates.verdict,
)
OF_PAGES: tuple[Callable[[PublishedStudy], Findings], ...] = (
    identity.misread,
    identity.models,
    identity.claimed,
    identity.hardware,
    identity.advice,
    cells.copied,
    cells.percents,
    cells.success_rates,
    cells.latencies,
    claims.hidden,
    results.lines,
    results.summaries,
    claims.untried,
    claims.ties,
    claims.decoding,
    gains.gains,
    gains.rows,
    gains.incumbents,
    gains.numbers,
    gains.extrapolated,
    gains.references,
    treatments.recommended,
    treatments.baselines,
    treatments.combinations,
    treatments.duplicates,
    treatments.repeats,
    treatments.reprinted,
    treatments.one_sided,
    treatments.unreported,
    identity.values,
    identity.prompts,
    identity.engines,
    bases.bases,
    bases.idle_options,
    bases.turned_off,
    loads.rate_limited,
    loads.unsteady,
    loads.announced,
    loads.failures,
    loads.clients,
    loads.asked,
    gains.noise,
)
