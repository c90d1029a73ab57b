"""OTLP over HTTP: the requests of a run as spans and histograms, which any OpenTelemetry collector
takes.

Names of attributes and metrics are those of the semantic conventions for generative AI, where these
have one (https://opentelemetry.io/docs/specs/semconv/gen-ai/); others begin with `loadgen.`. The
messages of the protocol are dicts of their fields until they are sent.
"""

import os
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from loadgen.config import server_url
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.errors import BadInput, LoadgenError, Unreachable
from loadgen.metrics.records.file import RecordFile
from loadgen.util import http_client, packages
from loadgen.util.clock import NS_PER_S
from loadgen.util.number_format import to_ms
from loadgen.util.redaction import redact_user
from loadgen.util.trace_context import trace_ids
from loadgen.version import __version__
from loadgen.workload import endpoints

FLAG, PACKAGE = "--otlp", "opentelemetry-proto"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"  # NAME=VALUE,..., percent-encoded, as all exporters read it
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*([ -~]*)")  # RFC 9110, section 5.1
PATH = "/v1/"  # and the kind of what is sent, after the URL of a collector
# What is sent: its name in the path, in the protocol, and where an answer counts what was rejected.
KINDS = {
    "traces": ("trace", "spans", "rejected_spans"),
    "metrics": ("metrics", "metrics", "rejected_data_points"),
}
SPANS_AT_ONCE = 512
# Boundaries of buckets that the conventions advise.
DURATION_S = (
    *(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64),
    *(1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
)
FIRST_S = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5),
    *(0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)
TOKENS = tuple(4.0**power for power in range(14))
DURATION = "gen_ai.client.operation.duration"
FIRST = "gen_ai.client.operation.time_to_first_chunk"
USAGE, LAG, TTFT_DUE = "gen_ai.client.token.usage", "loadgen.lag", "loadgen.ttft_due"
# The metrics: the unit of each, and the boundaries of its buckets.
METRICS = {
    DURATION: ("s", DURATION_S),
    LAG: ("s", FIRST_S),
    FIRST: ("s", FIRST_S),
    TTFT_DUE: ("s", FIRST_S),
    USAGE: ("{token}", TOKENS),
}
MODEL, OPERATION, ERROR = "gen_ai.request.model", "gen_ai.operation.name", "error.type"
Value = str | int | float
Message = dict[str, Any]


class Exported(Struct, frozen=True):
    """What a collector took.

    Attributes:
        spans: The number of spans.
        metrics: The number of metrics.
        unsent: Requests that were never sent, and have no span.
        joins: Whether the requests carried the ids of these spans.
        warnings: What the collector said although it took everything, each once.
    """

    spans: int
    metrics: int
    unsent: int
    joins: bool
    warnings: tuple[str, ...]


def export(path: str, url: str, verdict: str) -> Exported:
    """Send the requests of a run to a collector.

    Args:
        path: A file of records.
        url: The collector, to which /v1/traces and /v1/metrics are appended, or one of the two.
        verdict: The verdict of the run, an attribute of all that is sent.

    Raises:
        BadInput: The package is missing, the file has no exact start, or the URL or a header is
            none.
        LoadgenError: The collector refuses something.
        Unreachable: It cannot be reached.
    """
    packages.require(FLAG, "OTLP", PACKAGE)
    file = RecordFile(path)
    if file.start_unix_ns is None:
        problem = f"{path} is of an earlier version, and its start is known to the second alone"
        raise BadInput(FLAG, problem, "give the records of a new run")
    run = _Run(file, file.start_unix_ns, verdict)
    send = partial(_post, _base(url), _headers(), run.resource)
    spans = run.spans()
    count = 0
    warnings = dict[str, None]()
    while batch := list(islice(spans, SPANS_AT_ONCE)):
        warnings[send("traces", batch)] = None
        count += len(batch)
    metrics = run.metrics()
    warnings[send("metrics", metrics)] = None
    joins = file.header.trace_key is not None
    return Exported(count, len(metrics), run.unsent, joins, tuple(filter(None, warnings)))


class _Run:
    """The requests of a run as messages of the protocol.

    Args:
        file: Its records.
        start_unix_ns: When its clock started, ns since 1970.
        verdict: Its verdict.

    Attributes:
        unsent: Requests that were never sent, once all spans are made.
        resource: The attributes of all that is sent.
    """

    def __init__(self, file: RecordFile, start_unix_ns: int, verdict: str) -> None:
        settings = file.header.settings
        api = endpoints.find(settings)
        self.unsent = 0
        self._file = file
        self._to_unix_ns = start_unix_ns - file.start_ns
        self._start_ns = self._end_ns = start_unix_ns
        # Without --trace nobody else has the ids; they are the same whenever they are exported.
        self._key = file.header.trace_key or f"{start_unix_ns:032x}"[-32:]
        self._operation = "chat" if api.takes_messages else "text_completion"
        if not settings.generates:
            self._operation = "embeddings"
        self._common = {OPERATION: self._operation, MODEL: file.header.model}
        self._servers = [_server(url) for url in settings.urls] or [{}]
        self.resource = {
            "service.name": "loadgen",
            "service.version": __version__,
            "loadgen.verdict": verdict,
            "loadgen.date": file.header.date,
        }
        self._histograms: dict[str, dict[object, _Histogram]] = {name: {} for name in METRICS}

    def spans(self) -> Iterator[Message]:
        """Yield a span for each request that was sent, and count it in the metrics."""
        for record in self._file:
            if not record.sent:
                self.unsent += 1
                continue
            ids = trace_ids(self._key, record.index)
            end = max(record.sent, record.closed, record.last_token)
            is_ok = record.outcome is Outcome.OK
            self._end_ns = max(self._end_ns, end + self._to_unix_ns)
            for name, facts, value in self._values(record, end):
                parts = self._histograms[name]
                if (key := (*facts.items(),)) not in parts:
                    parts[key] = _Histogram(METRICS[name][1], self._common | facts)
                parts[key].add(value)
            moments = ("first_byte", "first_token", "last_token")
            yield {
                "trace_id": bytes.fromhex(ids.trace_id),
                "span_id": bytes.fromhex(ids.span_id),
                "name": f"{self._operation} {self._file.header.model}",
                "kind": "SPAN_KIND_CLIENT",
                "start_time_unix_nano": record.sent + self._to_unix_ns,
                "end_time_unix_nano": end + self._to_unix_ns,
                "attributes": _attributes(self._facts(record)),
                "events": [
                    {"time_unix_nano": at_ns + self._to_unix_ns, "name": f"loadgen.{name}"}
                    for name in moments
                    if (at_ns := getattr(record, name))
                ],
                "status": {
                    "code": "STATUS_CODE_OK" if is_ok else "STATUS_CODE_ERROR",
                    "message": "" if is_ok else record.detail or "",
                },
            }

    def metrics(self) -> list[Message]:
        """Return the histograms of the requests whose spans were made."""
        kind = {"aggregation_temporality": "AGGREGATION_TEMPORALITY_CUMULATIVE"}
        made = list[Message]()
        for name, parts in self._histograms.items():
            points = [part.point(self._start_ns, self._end_ns) for part in parts.values()]
            histogram = kind | {"data_points": points}
            made += (
                [{"name": name, "unit": METRICS[name][0], "histogram": histogram}] if points else []
            )
        return made

    def _facts(self, record: Record) -> dict[str, Value | None]:
        failed = record.outcome is not None and record.outcome is not Outcome.OK
        return {
            **self._common,
            **self._servers[min(record.target, len(self._servers) - 1)],
            "gen_ai.usage.input_tokens": _known(record.prompt_tokens),
            "gen_ai.usage.output_tokens": _known(record.completion_tokens),
            "http.response.status_code": record.status or None,
            ERROR: str(record.outcome) if failed else None,
            "loadgen.finish_reason": record.finish_reason,
            "loadgen.index": record.index,
            "loadgen.source": record.source,
            "loadgen.attempts": record.attempts,
            "loadgen.lag_ms": to_ms(record.lag_ns),
        }

    def _values(self, record: Record, end_ns: int) -> Iterator[tuple[str, dict[str, str], float]]:
        """Yield what a request adds to the metrics: the name, further attributes, the value."""
        is_ok = record.outcome is Outcome.OK
        outcome = {} if is_ok else {ERROR: str(record.outcome)}
        yield DURATION, outcome, (end_ns - record.sent) / NS_PER_S
        if record.lag_ns is not None:
            yield LAG, {}, record.lag_ns / NS_PER_S
        if is_ok and record.first_token:
            yield FIRST, {}, (record.first_token - record.sent) / NS_PER_S
            yield TTFT_DUE, {}, (record.first_token - record.due) / NS_PER_S
        for kind, count in (("input", record.prompt_tokens), ("output", record.completion_tokens)):
            if is_ok and count >= 0:
                yield USAGE, {"gen_ai.token.type": kind}, count


class _Histogram:
    """The values of a metric with the same attributes, in buckets.

    Args:
        bounds: The upper boundaries of its buckets; values above are in one more.
        facts: The attributes.
    """

    def __init__(self, bounds: tuple[float, ...], facts: dict[str, str]) -> None:
        self._bounds, self._facts = bounds, facts
        self._counts = Counter[int]()
        self._sum, self._least, self._most = 0.0, float("inf"), float("-inf")

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value
        self._least, self._most = min(self._least, value), max(self._most, value)

    def point(self, start_ns: int, end_ns: int) -> Message:
        """Return its data point over a time, ns since 1970."""
        return {
            "attributes": _attributes(self._facts),
            "start_time_unix_nano": start_ns,
            "time_unix_nano": end_ns,
            "count": self._counts.total(),
            "sum": self._sum,
            "min": self._least,
            "max": self._most,
            "bucket_counts": [self._counts[number] for number in range(len(self._bounds) + 1)],
            "explicit_bounds": self._bounds,
        }


def _known(count: int) -> int | None:
    return None if count < 0 else count


def _server(url: str) -> dict[str, Value]:
    parts = urlsplit(url)
    address: dict[str, Value] = {"server.address": parts.hostname or ""}
    return address if parts.port is None else address | {"server.port": parts.port}


def _attributes(facts: Mapping[str, Value | None]) -> list[Message]:
    return [
        {"key": name, "value": {_kind(value): value}}
        for name, value in facts.items()
        if value is not None
    ]


def _kind(value: Value) -> str:
    if isinstance(value, str):
        return "string_value"
    return "int_value" if isinstance(value, int) else "double_value"


def _base(url: str) -> str:
    """Return the URL of a collector without the path of what is sent.

    Raises:
        BadInput: It is no URL.
    """
    base = url.rstrip("/")
    for kind in KINDS:
        base = base.removesuffix(f"{PATH}{kind}")
    ((base,), _) = server_url.read((base,), None)
    parts = server_url.parsed(base)
    if parts is None or parts.query:
        fault = "is no URL of HTTP" if parts is None else "has a query"
        remedy = "write that of a collector, as in http://127.0.0.1:4318"
        raise BadInput(FLAG, f"{redact_user(url)!r} {fault}", remedy)
    return base.rstrip("/")


def _headers() -> dict[str, str]:
    """Read the headers for the collector; their values are secrets, which no error shows.

    Raises:
        BadInput: One is none.
    """
    headers = dict[str, str]()
    pairs = filter(str.strip, os.environ.get(HEADERS, "").split(","))
    for number, pair in enumerate(pairs, 1):
        name, equals, value = pair.partition("=")
        match = HEADER.fullmatch(f"{name.strip()}{equals}{unquote(value.strip())}")
        if match is None:
            raise BadInput(HEADERS, f"header {number} is not NAME=VALUE", "write NAME=VALUE,...")
        headers[match[1]] = match[2]
    return headers


def _post(
    url: str,
    headers: dict[str, str],
    resource: Mapping[str, Value],
    kind: str,
    items: Sequence[Message],
) -> str:
    """Send spans or metrics.

    Returns:
        A warning of the collector; empty without one.

    Raises:
        LoadgenError: The collector does not take all of it.
        Unreachable: It cannot be reached.
    """
    from google.protobuf.message import DecodeError

    signal, name, rejects = KINDS[kind]
    service: Any = import_module(f"opentelemetry.proto.collector.{signal}.v1.{signal}_service_pb2")
    scoped = {"scope": {"name": "loadgen", "version": __version__}, name: items}
    part = {"resource": {"attributes": _attributes(resource)}, f"scope_{name}": [scoped]}
    export = f"Export{signal.title()}Service"
    message = getattr(service, f"{export}Request")(**{f"resource_{name}": [part]})
    answer = getattr(service, f"{export}Response")()
    address = f"{url}{PATH}{kind}"
    place = redact_user(address)
    content = {"Content-Type": "application/x-protobuf"}
    try:
        reply = http_client.send(address, message.SerializeToString(), headers | content)
    except Unreachable as error:
        remedy = "" if error.advises else "; check the URL, and that the collector runs"
        said = str(error).replace(address, place)
        raise Unreachable(f"{FLAG}: {said}{remedy}", advises=True) from error
    try:
        answer.ParseFromString(reply.body)
        is_taken = 200 <= reply.status < 300
    except DecodeError:
        is_taken = False
    if not is_taken:
        said = " ".join(str(reply).split())
        raise LoadgenError(f"{FLAG}: {place} answered {said}; name a collector of OTLP over HTTP")
    partial_success = answer.partial_success
    words = " ".join(partial_success.error_message.split())
    if rejected := getattr(partial_success, rejects):
        why = words or "it does not say why"
        raise LoadgenError(f"{FLAG}: {place} has rejected {rejected:,}: {why}; see its log")
    return words
