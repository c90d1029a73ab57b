"""Rules: each yields what it finds wrong; of one result, of a page as a whole, or of several files."""

from collections.abc import Callable

from loadgen.lab.audit.finding import Findings
from loadgen.lab.audit.published import Published
from loadgen.lab.audit.rules import (
    bases,
    cells,
    claims,
    concurrency,
    gains,
    identity,
    loads,
    results,
    scripts,
    treatments,
    work,
)
from loadgen.lab.audit.rules.latencies import latencies
from loadgen.lab.audit.rules.losses import hidden
from loadgen.lab.audit.rules.noise import noise
from loadgen.lab.audit.rules.rates import rates
from loadgen.lab.audit.rules.streams import itl, tpot
from loadgen.lab.audit.rules.verdict import verdict
from loadgen.lab.audit.study import PublishedStudy

OF_RESULTS: tuple[Callable[[Published], Findings], ...] = (
    rates,
    concurrency.peak_throughput,
    concurrency.peak_concurrency,
    concurrency.in_flight,
    latencies,
    tpot,
    itl,
    verdict,
)
OF_PAGES: tuple[Callable[[PublishedStudy], Findings], ...] = (
    scripts.misread,
    identity.models,
    identity.claimed,
    identity.hardware,
    identity.advice,
    cells.copied,
    cells.percents,
    cells.success_rates,
    cells.latencies,
    hidden,
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
    scripts.values,
    scripts.prompts,
    scripts.engines,
    bases.bases,
    bases.idle_options,
    bases.turned_off,
    loads.rate_limited,
    loads.unsteady,
    loads.announced,
    loads.failures,
    loads.clients,
    work.asked,
    noise,
)
