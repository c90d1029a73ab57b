"""Run: the page of one result, from top to bottom."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from loadgen.config import slo
from loadgen.config.option import OUTPUT, flag, options
from loadgen.config.serialize import flags, restored
from loadgen.config.settings import RunSettings
from loadgen.document import (
    Block,
    Code,
    Document,
    Fact,
    Facts,
    Note,
    NoteKind,
    Paragraph,
    Span,
    Table,
    Tone,
)
from loadgen.metrics.failures import lost_text
from loadgen.report import load_line
from loadgen.report.result import RunResult
from loadgen.report.result.fields import to_json_values
from loadgen.report.result.numbers import RunNumbers
from loadgen.report.result.provenance import Provenance
from loadgen.report.run_page import charts
from loadgen.report.run_page import explanation as explanation_charts
from loadgen.report.run_state import answer_rate
from loadgen.report.sections import (
    client,
    explanation,
    groups,
    latencies,
    outcomes,
    server,
    term,
    tokens,
    verdict,
)
from loadgen.report.summary_line import answer
from loadgen.report.tool_block import tool_block
from loadgen.util.number_format import in_one_unit, three_digits
from loadgen.util.redaction import KEY_VARIABLE, MARK

# Of the settings that say what is reported and kept, those that change what a report says; the
# others name files.
KEPT_OUTPUT_SETTINGS = ("percentile_metrics", "metric_percentiles", "label", "metadata")
PARTS = {
    "asked": "Settings that were given",
    "settings": "All settings",
    "seeds": "Seeds",
    "prompts": "Prompts",
    "schedule": "Schedule",
    "engine": "Engine",
    "machine": "Machine",
    "versions": "Versions",
}


def date(numbers: RunNumbers) -> str:
    """Write when a run began, by the clock of its machine."""
    day, _, time = numbers.date.partition("-")
    return f"{day[:4]}-{day[4:6]}-{day[6:]} {time[:2]}:{time[2:4]}:{time[4:]}"


def origin(result: RunResult) -> str:
    """Say when and where a run was measured, and by which version of loadgen."""
    made = result.provenance
    return origin_text(result.numbers, made.target_urls, made.versions.loadgen)


def origin_text(numbers: RunNumbers, target: str | None, version: str | None) -> str:
    """Join the date of a run, the URLs of its servers, and the version of loadgen; without what is
    not known.
    """
    return ", ".join(filter(None, (date(numbers), target, version and f"loadgen {version}")))


def document(result: RunResult, blocks: Iterable[Block]) -> Document:
    """Put a document of a run together: its load, its answer, and these blocks."""
    about = load_line.full_text(result)
    title = load_line.title(result)
    return Document(title, tuple(blocks), (answer(result),), about, origin(result))


def blocks(result: RunResult) -> Iterator[Block]:
    """Write the figures and two charts; then, folded, the reasons, the details, and
    where the numbers come from.
    """
    found = answer(result)
    yield from map(Paragraph.of, verdict.slo_lines(result, found.text))
    yield _headline(result)
    for drawing in (
        charts.in_flight_drawing(result),
        charts.percentile_drawing(result),
    ):
        if drawing is not None:
            yield drawing
    yield from sections(result, found.kind)
    fold = Note.fold
    changes = result.provenance.asked
    again = Code("\n".join([*_comments(changes), command(changes)]), "bash", copyable=True)
    yield fold("Run it again: the command", again)
    yield fold(
        "Where it comes from: settings, seeds, prompts, engine, machine and versions",
        *_provenance_tables(result.provenance),
    )
    tool = "vllm bench serve" if result.sglang is None else "SGLang's bench_serving"
    yield fold(f"What {tool} prints", tool_block(result))


def sections(
    result: RunResult, kind: NoteKind = "note", *, has_charts: bool = True
) -> Iterator[Block]:
    """Write the reasons and the details.

    Args:
        result: The result.
        kind: The kind of the badge, whose colour the reasons have.
        has_charts: Whether the charts over time are drawn.
    """
    fold = Note.fold
    yield from verdict.reasons(result, kind)
    if (why := result.explain) is not None:
        details: list[Block] = [explanation.answer(why)]
        if has_charts:
            details = [*explanation.blocks(why), *explanation_charts.drawings(why)]
        yield fold(explanation.TITLE, *details)
    yield fold("Latencies: mean, percentiles and maximum", *latencies.blocks(result))
    if has_charts:
        yield fold("Over time: requests, latencies, tokens and gaps", *charts.blocks(result))
    yield from groups.blocks(result)
    yield fold("Requests: how they ended", *outcomes.blocks(result))
    yield fold("Tokens: counts, rates and efficiency", *tokens.blocks(result))
    yield fold("The server: its cache and its metrics", *server.blocks(result))
    yield fold("The client: its load and its disturbances", *client.blocks(result))
    yield verdict.checks(result)


def command(changes: Mapping[str, Any]) -> str:
    """Make the `loadgen run` command of some settings, without credentials and output files.

    Args:
        changes: The settings that differ from the defaults, as provenance has them.
    """
    settings = restored(changes)
    unnamed: dict[str, Any] = {
        name: option.default
        for name, option in options(RunSettings).items()
        if option.group == OUTPUT and name not in KEPT_OUTPUT_SETTINGS
    }
    unnamed |= {"api_key": None, "api_key_command": None}
    headers = tuple(header.replace(MARK, "@FILE") for header in settings.header)
    return shlex.join(["loadgen", "run", *flags(settings.replace(**unnamed, header=headers))])


def _comments(changes: Mapping[str, Any]) -> Iterator[str]:
    if changes.get("api_key"):
        yield f"# {KEY_VARIABLE} must hold the API key."
    if changes.get("api_key_command"):
        yield f"# Add {flag('api_key_command')} with the command that prints the API key."
    if changes.get("header"):
        yield f"# FILE must contain the value of {flag('header')}: one file for each header."
    if any(
        MARK in json.dumps(changes[name])
        for name in ("base_url", "proxy", "engine_arg")
        if name in changes
    ):
        yield f"# Put what was left out in place of {MARK}."


def _headline(result: RunResult) -> Facts:
    """Select the six main numbers of the run."""
    numbers, peak = result.numbers, result.numbers.max_output_tokens_per_s
    gone_s, answered = result.no_answer_since_s, answer_rate(result)
    until = "" if gone_s is None else f"until {gone_s:.1f} s"
    lost = lost_text(result.cancelled.in_flight, result.cancelled.never_sent)
    ends = f"of {result.scheduled}; {numbers.failed} failed{f', {lost}' if lost else ''}"
    facts = [Fact(term("requests", "Requests"), f"{numbers.completed} ok", ends)]
    name, title, rate = "answer_rate", "Answers", answered
    if answered is None:
        name, title, rate = "request_throughput", "Throughput", numbers.request_throughput
    asked = numbers.request_rate
    requested = "" if isinstance(asked, str) else f"requested: {asked:g} req/s"
    facts.append(_fact(term(name, title), three_digits(rate, "req/s"), until, requested))
    if result.generates:
        tokens = (
            numbers.output_throughput if gone_s is None else numbers.total_output_tokens / gone_s
        )
        best = f"{three_digits(peak, 'tok/s')} in the best second"
        best = "" if peak is None or numbers.duration < 1 else best
        output = term("output_throughput", "Output tokens")
        facts.append(_fact(output, three_digits(tokens, "tok/s"), until, best))
    else:
        facts.append(
            _fact(Span("Input tokens"), three_digits(numbers.total_token_throughput, "tok/s"))
        )
    for metric in groups.metrics(result):
        name = slo.distribution(metric, result.latency_from)
        distribution = result.latency(metric)
        few = latencies.few_mark("p99", latencies.request_count(name, result))
        p50, p99 = in_one_unit(distribution.p50_ms, distribution.p99_ms)
        highest = f"p99 {p99}{' (few values)' if few else ''}" if distribution.count else ""
        error = latencies.large_client_errors(name, result, latencies.HEADLINE_COLUMNS)
        facts.append(_fact(term(name, f"{metric.upper()} p50"), p50, highest, error))
    return Facts(tuple(facts))


def _fact(name: Span, value: str, *beside: str) -> Fact:
    return Fact(name, value, "; ".join(filter(None, beside)))


def _provenance_tables(provenance: Provenance) -> Iterator[Block]:
    """Write each part of the provenance as a folded table."""
    saved = to_json_values(provenance)
    for name, title in PARTS.items():
        part = saved.get(name)
        if part:
            texts = {
                what: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                for what, value in part.items()
            }
            rows = ((what, Span(text, Tone.CODE)) for what, text in texts.items())
            yield Note.fold(title, Table.of(("", ""), rows))
        elif name == "asked":
            yield Paragraph.of("All settings are the defaults.")
