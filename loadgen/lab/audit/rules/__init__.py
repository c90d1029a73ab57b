"""Rules: each yields what it finds wrong; of one result, of any page, of a study."""

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
    rates.retokenized,
    streams.latencies,
    streams.tpot,
    streams.itl,
    rates.verdict,
)
OF_PAGES: tuple[Callable[[PublishedStudy], Findings], ...] = (
    identity.misread,
    cells.copied,
    cells.percents,
    cells.of_rows,
    cells.success_rates,
    cells.latencies,
    claims.hidden,
    claims.ties,
    claims.decoding,
    results.lines,
    results.summaries,
    gains.references,
    treatments.baselines,
    treatments.duplicates,
    treatments.reprinted,
    treatments.unreported,
    loads.asked,
    loads.rate_limited,
    loads.unsteady,
    loads.failures,
    loads.clients,
)
# Of a page that tries candidates in stages. A recipe documents several models and loads, and
# promises none of them.
OF_STUDIES: tuple[Callable[[PublishedStudy], Findings], ...] = (
    identity.models,
    identity.claimed,
    identity.hardware,
    identity.advice,
    identity.prompts,
    identity.values,
    identity.engines,
    claims.untried,
    gains.gains,
    gains.rows,
    gains.incumbents,
    gains.numbers,
    gains.extrapolated,
    gains.noise,
    treatments.recommended,
    treatments.combinations,
    treatments.repeats,
    treatments.one_sided,
    bases.bases,
    bases.idle_options,
    bases.turned_off,
    loads.announced,
)
