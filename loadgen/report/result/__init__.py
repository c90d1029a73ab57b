"""The result of a run: a typed tree.

Its JSON has vLLM's keys at the top, and the rest under `loadgen`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from msgspec import UNSET, Struct, UnsetType, structs

from loadgen.checks import EXPLAINED, PILE_UP, Check, Verdict, reasons, repeated_prompts, verdict
from loadgen.config import slo
from loadgen.features.liveness import ServerSilence, silences
from loadgen.features.structured_output import StructuredOutput
from loadgen.metrics.run_data import RunData
from loadgen.report.result.client import ClientTotals, Worker
from loadgen.report.result.explanation import Explanation
from loadgen.report.result.fields import from_json_values, to_json_values
from loadgen.report.result.latencies import (
    ClientErrors,
    Clock,
    Distribution,
    Distributions,
    Histograms,
    LatencyIntervals,
)
from loadgen.report.result.numbers import RunNumbers
from loadgen.report.result.outcomes import (
    AnswerEnds,
    Cancelled,
    Departures,
    Example,
    LimitResult,
    Outcomes,
    Retries,
    Silence,
    SilentStreams,
    Stop,
    Unfinished,
    Unread,
    judge_limits,
)
from loadgen.report.result.provenance import Provenance
from loadgen.report.result.rates import Efficiency, Rates
from loadgen.report.result.request_groups import (
    ClassResult,
    PhaseResult,
    SessionTimes,
    Target,
    Turn,
)
from loadgen.report.result.server import PrefixCache, ServerCallResult, ServerMetrics
from loadgen.report.result.sglang_numbers import SglangNumbers
from loadgen.report.result.timeline import RequestColumns, RequestSample, Timeline
from loadgen.report.result.tokens import Tokens
from loadgen.util.number_format import to_ms

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

SCHEMA: Literal[1] = 1
Counts = dict[str, int]


class RunFindings(Struct, frozen=True, kw_only=True):
    """loadgen's own findings about a run, beyond vLLM's keys."""

    # A field with a default is missing in files of earlier versions, and stands in every file of
    # this one.

    schema: Annotated[Literal[1], "The version of this schema."]
    verdict: Annotated[Verdict, "Whether the numbers of the run can be trusted."]
    checks: Annotated[list[Check], "All checks, by group (docs/checks.md)."]
    partial: Annotated[str | None, "Why the run ended early; null: it did not."]
    overloaded: Annotated[
        bool | None, "Whether requests came faster than they were answered; null: unknown."
    ]
    simulated: Annotated[bool, "Whether loadgen's own simulator was measured."]
    insecure: Annotated[bool, "Whether TLS certificates were not verified."]
    closed_loop: Annotated[bool, "Whether each request was due when a slot was free for it."]
    latency_from: Annotated[
        Clock, "The clock on which SLOs are judged and tables are printed first."
    ]
    scheduled: Annotated[int, "Number of requests that the run should send."]
    repeated_prompts: Annotated[int, "Requests that repeated the prompt of an earlier one."]
    outcomes: Annotated[
        Outcomes,
        "Requests by how they ended; `status(404)` spells an HTTP status out. Outcomes of 0 are "
        "left out.",
    ]
    examples: Annotated[
        dict[str, list[Example]], "The first few requests of each outcome other than ok."
    ]
    finish_reasons: Annotated[Counts, "Ok requests by the finish reason that the server gave."]
    server_times: Annotated[Counts, "Ok requests of which a server said times, by who it is."] = {}
    early_stops: Annotated[
        Counts,
        "What ended ok requests with fewer output tokens than requested: finish reasons, with "
        "the stop word or token id.",
    ] = {}
    answer_ends: Annotated[
        AnswerEnds | None, "How else answers ended; null: the file is older."
    ] = None
    unread: Annotated[
        dict[str, Unread],
        "Parts of the answers that loadgen does not know: keys with text (`delta.KEY`), and "
        "lines (`line`).",
    ] = {}
    error_rate: Annotated[
        float | None,
        "Share of the ended requests that failed on the server. Turns that were never due "
        "(`never_due`) count as failed; requests that the end of the run cancelled (`cancelled`), "
        "and those whose users left, do not count.",
    ]
    client_error_rate: Annotated[
        float | None,
        "Share of the same requests that the client failed to send (client_error). Null if no "
        "request ended.",
    ]
    no_answer_since_s: Annotated[
        float | None,
        "If the server refused every connection for 5 s: when it began to, seconds on the clock.",
    ] = None
    stopped: Annotated[
        Stop | None, "The condition of `--stop-when` that ended the run; null: none did."
    ] = None
    cancelled: Cancelled = Cancelled()
    silent_streams: SilentStreams = SilentStreams()
    silences: Annotated[list[ServerSilence], "Times in which no stream had a token."] = []
    never_due: Annotated[
        int,
        "Turns that ended as `cancelled` because an earlier turn had failed on the server, so "
        "that they were never due.",
    ]
    departures: Annotated[
        Departures | None,
        "Requests whose users left before the end; null: none were to leave (--disconnect).",
    ] = None
    retries: Annotated[
        Retries | None,
        "Requests that were sent again after a refusal; null: none were to be (--retry).",
    ] = None
    targets: Annotated[list[Target], "Each of several targets; empty if there is only one."] = []
    classes: Annotated[
        list[ClassResult], "Each class of requests (--class, --lora-modules); empty without any."
    ] = []
    phases: Annotated[
        list[PhaseResult], "Each phase of a rate or concurrency profile; empty without one."
    ] = []
    sessions: Annotated[SessionTimes | None, "The sessions as wholes; null: the run has none."] = (
        None
    )
    turns: Annotated[
        list[Turn], "Each turn of the sessions, over all sessions; empty without any."
    ] = []
    latency_ms: Distributions
    intervals_ms: Annotated[
        LatencyIntervals,
        "The 99 % confidence intervals of the percentiles, ms.",
    ]
    client_error_ms: Annotated[
        ClientErrors | None,
        "How far each mean and percentile can be from the truth because of the client, ms; null: "
        "unknown.",
    ] = None
    unfinished: Unfinished
    tpot_token_weighted_ms: Annotated[
        float | None, "TPOT over all tokens instead of over requests, ms; null: none was measured."
    ]
    tokens: Tokens
    rates: Rates
    timeline: Annotated[
        Timeline | UnsetType | None, "The run over time; null: no request has ended."
    ] = UNSET
    request_sample: Annotated[
        RequestSample | None, "Single requests over time; null: no request has ended."
    ] = None
    structured_output: Annotated[StructuredOutput | None, "Answers that were to be JSON."] = None
    efficiency: Annotated[
        Efficiency | None,
        "Speed for a user and per GPU, energy and cost; null: answers have no tokens, or none "
        "came.",
    ] = None
    slo: Annotated[
        list[LimitResult],
        "Each limit of --slo, and of each class, which begins with its name: "
        "`chat:ttft_p99<500ms`. error_rate<1% is added if all limits are on means or gaps.",
    ]
    client: ClientTotals
    workers: Annotated[list[Worker], "How each worker ended."] = []
    server: Annotated[ServerMetrics | None, "Server metrics; null: there are none."] = None
    key_renewals: Annotated[
        int, "How often --api-key-command has printed another key while the run went on."
    ] = 0
    server_calls: Annotated[
        list[ServerCallResult],
        "Calls to the servers that are not part of the load (--profile, --call-before), in order.",
    ] = []
    prefix_cache: Annotated[
        PrefixCache | None,
        "The server's prefix cache: its state, and how much input came from it; null: an earlier "
        "version.",
    ] = None
    explain: Annotated[Explanation | None, "Where the time went; null: it has no records."] = None
    provenance: Provenance
    histograms: Histograms


class RunResult(RunFindings, frozen=True, kw_only=True, dict=True):
    """The result of a run.

    Attributes:
        numbers: The single numbers by the names of `vllm bench serve`.
        sglang: The further numbers of SGLang's `bench_serving`; None unless the run was asked for
            them.
        columns: What --save-detailed keeps of each request; None without it.
    """

    numbers: RunNumbers
    sglang: SglangNumbers | None = None
    columns: RequestColumns | None = None

    @property
    def ttft(self) -> Distribution:
        """Time to first token, on the clock of `latency_from`."""
        return self.latency("ttft")

    @property
    def ttfo(self) -> Distribution:
        """Time to the first token of the answer itself, after any reasoning, on the clock of
        `latency_from`.
        """
        return self.latency("ttfo")

    @property
    def tpot(self) -> Distribution:
        """Time per output token after those of the first event."""
        return self.latency_ms.tpot

    @property
    def itl(self) -> Distribution:
        """Inter-token latency: gaps between tokens."""
        return self.latency_ms.itl

    @property
    def icl(self) -> Distribution:
        """Inter-chunk latency: gaps between events with tokens; vLLM calls it ITL."""
        return self.latency_ms.icl

    @property
    def e2el(self) -> Distribution:
        """End-to-end latency, on the clock of `latency_from`."""
        return self.latency("e2el")

    @property
    def streams(self) -> bool:
        """Whether answers are streams of tokens, which come in one piece otherwise."""
        return self.generates and not self.provenance.settings.disable_stream

    @property
    def generates(self) -> bool:
        """Whether answers have tokens; embeddings and scores have none."""
        return self.numbers.generates

    def latency(self, metric: str) -> Distribution:
        """Look up a latency: ttft, ttfo, tpot, itl, icl or e2el, on the clock of `latency_from`."""
        return self.latency_ms.latency(metric, self.latency_from)

    def histogram(self, name: str) -> HdrHistogram:
        """Return a whole distribution, ns, as a histogram of the package hdrhistogram.

        Args:
            name: The name of a distribution: "ttft_due", "lag".

        Raises:
            AttributeError: No distribution has this name.
            BadInput: The numbers of the histogram do not agree with each other.
        """
        return self.histograms.named(name).histogram()

    @property
    def failed_checks(self) -> list[Check]:
        """The checks for which the run is not VALID."""
        return [check for check in self.checks if check.ok is False and check.counts]

    @property
    def notes(self) -> list[Check]:
        """The checks that did not pass, and leave the verdict alone."""
        wrong = [check for check in self.checks if check.ok is False]
        return [check for check in wrong if not check.counts and not check.explains]

    @property
    def explanations(self) -> list[Check]:
        """What explains requests sent late and client errors; empty where there are none."""
        wrong = [check for check in self.checks if check.ok is False and check.explains]
        return wrong if any(check.name in EXPLAINED for check in self.failed_checks) else []

    @property
    def max_client_error_ms(self) -> float | None:
        """The largest error that the client may have added to a latency on the clock of
        `latency_from`, ms.
        """
        return self.max_client_error[1] if self.max_client_error else None

    @property
    def max_client_error(self) -> tuple[str, float] | None:
        """The figure that the client may have moved the most, such as "p99 E2EL", and by how
        much, ms.
        """
        if self.client_error_ms is None:
            return None
        errors = [
            (f"{statistic} {metric.upper()}", error)
            for metric in slo.LATENCY_METRICS
            for statistic, error in self.client_error_ms.named(
                slo.distribution(metric, self.latency_from)
            ).items()
            if error is not None
        ]
        return max(errors, key=lambda error: error[1], default=None)

    def reasons(self, group: str = "") -> list[str]:
        """Say why the result is not VALID, a line for each check.

        Args:
            group: The letter of a group of checks; empty: all of them.
        """
        return reasons(self.checks, group)

    @classmethod
    def of(cls, run: RunData, checks: list[Check], **more: Any) -> Self:
        """Make the result of a run.

        Args:
            run: Its data.
            checks: What was checked of it.
            more: Fields that a subclass has besides.
        """
        settings, snapshot, percentiles = run.settings, run.snapshot, run.percentiles
        counters, failures, stop = snapshot.counters, snapshot.failures, run.trailer.stopped
        latencies = Distributions.of(snapshot, percentiles)
        classes, decoded = ClassResult.each(run), counters["decode_tokens"]
        is_steady = next((check.ok for check in checks if check.name == PILE_UP), None)
        numbers = RunNumbers.of(run, latencies)
        return cls(
            numbers=numbers,
            sglang=SglangNumbers.of(run, numbers, latencies.e2el_sent),
            columns=RequestColumns.of(
                snapshot, streams=settings.streams, generates=settings.generates
            ),
            schema=SCHEMA,
            verdict=verdict(checks),
            checks=checks,
            partial=snapshot.partial,
            overloaded=None if is_steady is None else not is_steady,
            simulated=run.header.simulated,
            insecure=settings.insecure,
            closed_loop=run.closed_loop,
            latency_from="due" if settings.latency_from == "due" else "sent",
            scheduled=snapshot.scheduled,
            repeated_prompts=repeated_prompts(run),
            outcomes=snapshot.outcomes,
            examples=from_json_values(snapshot.examples, dict[str, list[Example]]),
            finish_reasons=snapshot.finishes,
            early_stops=snapshot.early_stops,
            server_times=snapshot.said_times,
            answer_ends=AnswerEnds.of(snapshot),
            unread={
                name: Unread(count=count, example=example)
                for name, (count, example) in snapshot.unread.items()
            },
            error_rate=failures.server_rate,
            client_error_rate=failures.client_rate,
            no_answer_since_s=run.trailer.no_answer_since_s,
            stopped=None if stop is None else from_json_values(stop, Stop),
            cancelled=Cancelled(never_sent=snapshot.never_sent, in_flight=snapshot.cut_off),
            silent_streams=SilentStreams(
                count=counters["silent_streams"],
                examples=from_json_values(snapshot.silences, list[Silence]),
            ),
            silences=silences(run),
            never_due=counters["never_due"],
            departures=Departures.of(run),
            retries=Retries.of(run),
            targets=Target.each(run),
            classes=classes,
            phases=PhaseResult.each(run),
            sessions=SessionTimes.of(run),
            turns=Turn.each(run),
            latency_ms=latencies,
            intervals_ms=LatencyIntervals.of(snapshot, percentiles, settings.latency_from),
            client_error_ms=ClientErrors.of(snapshot, percentiles),
            unfinished=Unfinished.of(run),
            tpot_token_weighted_ms=to_ms(counters["decode_ns"] / decoded if decoded else None),
            tokens=Tokens.of(run),
            rates=Rates.of(run),
            structured_output=StructuredOutput.of(run),
            efficiency=Efficiency.of(run),
            timeline=Timeline.of(snapshot),
            request_sample=RequestSample.of(snapshot),
            slo=judge_limits(settings.slo, snapshot, settings.latency_from)
            + [row for result in classes for row in result.named_limits],
            client=ClientTotals.of(run),
            workers=from_json_values(run.workers, list[Worker]),
            server=ServerMetrics.of(run),
            key_renewals=run.trailer.facts.get("key_renewals", 0),
            server_calls=from_json_values(run.trailer.calls, list[ServerCallResult]),
            prefix_cache=PrefixCache.of(run),
            provenance=from_json_values(run.header.provenance, Provenance),
            histograms=Histograms.of(snapshot),
            **more,
        )

    @cached_property
    def data(self) -> dict[str, Any]:
        """The JSON as it is saved: `vllm bench serve`'s flat keys, and the rest under `loadgen`."""
        return self.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON as it is saved."""
        findings = {name: getattr(self, name) for name in RunFindings.__struct_fields__}
        return self.flat(self.columns) | {"loadgen": to_json_values(findings)}

    def flat(self, columns: RequestColumns | None = None) -> dict[str, Any]:
        """Return the flat keys of `vllm bench serve`; those of SGLang before them if the run was
        asked for them.

        Args:
            columns: As for `RunNumbers.to_dict`.
        """
        flat = self.numbers.to_dict(columns)
        return flat if self.sglang is None else self.sglang.to_dict(flat)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON of a saved result; files of earlier versions may lack fields that have a
        default.

        Raises:
            KeyError, TypeError, ValueError: It is no result, or not a whole one.
        """
        findings = structs.asdict(from_json_values(data["loadgen"], RunFindings))
        columns = from_json_values(data, RequestColumns) if "input_lens" in data else None
        sglang = from_json_values(data, SglangNumbers) if "total_throughput" in data else None
        others = {*RequestColumns.__struct_fields__, *SglangNumbers.__struct_fields__}
        numbers = RunNumbers.from_dict({key: data[key] for key in data if key not in others})
        return cls(**findings, numbers=numbers, sglang=sglang, columns=columns)
