"""Run: the page of one result, from top to bottom."""

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from loadgen.config import slo
from loadgen.config.option import OUTPUT, flag, options
from loadgen.config.serialize import flags, restored
from loadgen.config.settings import RunSettings
from loadgen.document import (
    Block,
    Code,
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
from loadgen.util.number_format import latency_unit, three_digits
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
    numbers = result.numbers
    requested = numbers.request_rate
    peak = numbers.max_output_tokens_per_s
    lost = lost_text(result.cancelled.in_flight, result.cancelled.never_sent)
    ends = f"of {result.scheduled}; {numbers.failed} failed{f', {lost}' if lost else ''}"
    beside_rate = "" if isinstance(requested, str) else f"requested: {requested:g} req/s"
    gone_s = result.no_answer_since_s
    tokens_per_s = (
        numbers.output_throughput if gone_s is None else numbers.total_output_tokens / gone_s
    )
    beside_tokens = (
        ""
        if peak is None or numbers.duration < 1
        else f"{three_digits(peak, 'tok/s')} in the best second"
    )
    if gone_s is not None:
        until = f"until {gone_s:.1f} s"
        beside_rate = f"{until}; {beside_rate}" if beside_rate else until
        beside_tokens = f"{until}; {beside_tokens}"
    answered = answer_rate(result)
    if answered is None:
        throughput = three_digits(numbers.request_throughput, "req/s")
        rate = Fact(term("request_throughput", "Throughput"), throughput, beside_rate)
    else:
        rate = Fact(term("answer_rate", "Answers"), three_digits(answered, "req/s"), beside_rate)
    facts = [Fact(term("requests", "Requests"), f"{numbers.completed} ok", ends), rate]
    if result.generates:
        facts.append(
            Fact(
                term("output_throughput", "Output tokens"),
                three_digits(tokens_per_s, "tok/s"),
                beside_tokens,
            )
        )
    else:
        facts.append(
            Fact(Span("Input tokens"), three_digits(numbers.total_token_throughput, "tok/s"), "")
        )
    for metric in groups.metrics(result):
        name = slo.distribution(metric, result.latency_from)
        distribution = result.latency(metric)
        few = (
            " (few values)"
            if latencies.few_mark("p99", latencies.request_count(name, result))
            else ""
        )
        size, unit = latency_unit(distribution.p50_ms, distribution.p99_ms)
        p50, p99 = (
            three_digits(None if ms is None else ms / size, unit)
            for ms in (distribution.p50_ms, distribution.p99_ms)
        )
        beside = filter(
            None,
            (
                f"p99 {p99}{few}" if distribution.count else "",
                latencies.large_client_errors(name, result, latencies.HEADLINE_COLUMNS),
            ),
        )
        facts.append(Fact(term(name, f"{metric.upper()} p50"), p50, "; ".join(beside)))
    return Facts(tuple(facts))


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
