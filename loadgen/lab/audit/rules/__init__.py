"""Rules: each yields what it finds wrong; of one result, of any page, of a study."""

from collections.abc import Callable, Iterator

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
    *(rates.rates, rates.peak_throughput, rates.peak_concurrency, rates.in_flight),
    *(rates.retokenized, rates.verdict, streams.latencies, streams.tpot, streams.itl),
)
OF_PAGES: tuple[Callable[[PublishedStudy], Findings], ...] = (
    *(identity.misread, gains.references, cells.success_rates, cells.latencies, cells.of_rows),
    *(claims.hidden, claims.ties, claims.decoding, results.summaries),
    *(treatments.baselines, treatments.duplicates),
    *(loads.asked, loads.rate_limited, loads.unsteady, loads.failures, loads.clients),
)
# Of a page that tries candidates in stages. A recipe documents several models and loads, and
# promises none of them.
OF_STUDIES: tuple[Callable[[PublishedStudy], Findings], ...] = (
    *(identity.models, identity.claimed, identity.hardware, identity.advice, identity.prompts),
    *(identity.values, identity.engines, claims.untried, loads.announced),
    *(gains.rows, gains.incumbents, gains.numbers, gains.extrapolated),
    *(treatments.recommended, treatments.combinations, treatments.one_sided),
)
# Where arms were started several times, numbers of tables and lines are means, which no block has.
OF_SINGLE_RUNS: tuple[Callable[[PublishedStudy], Findings], ...] = (
    *(cells.copied, cells.percents, results.lines, treatments.unreported),
)
OF_SINGLE_RUN_STUDIES: tuple[Callable[[PublishedStudy], Findings], ...] = (
    *(gains.gains, gains.noise, bases.bases, bases.idle_options, treatments.repeats),
)


def rules_for(study: PublishedStudy) -> Iterator[Callable[[PublishedStudy], Findings]]:
    """The rules that a page can be held to."""
    yield from OF_PAGES
    yield from OF_STUDIES if study.compares else ()
    if not study.repeated:
        yield from OF_SINGLE_RUNS
        yield from OF_SINGLE_RUN_STUDIES if study.compares else ()
