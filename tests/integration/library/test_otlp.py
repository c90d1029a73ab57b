"""Spans of a run join those of its server: a relay before the simulator logs when the kernel had
each request, and a receiver reads what a collector gets.
"""

import asyncio
import contextlib
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

import loadgen
from loadgen.cli.main import dispatch
from loadgen.errors import BadInput, LoadgenError, Unreachable
from loadgen.report import otlp
from tests.helpers.command_line import TOKENIZER
from tests.helpers.sim_server import simulated

pytest.importorskip("opentelemetry.proto")
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

COUNT = 40
MS = 1_000_000
SLEW_NS = 100_000  # by which the system's clock may be set during the run
SO_TIMESTAMPNS = 35  # of most processors, as in linux/socket.h; Python does not name it
STAMP = struct.Struct("@ll")  # a timespec
TRACEPARENT = re.compile(rb"\r\ntraceparent: 00-([0-9a-f]{32})-([0-9a-f]{16})-01\r\n")


class Relay:
    """Passes bytes to a server and back, a thread for each connection and direction.

    Attributes:
        url: Where it listens.
        log: By the id of a trace, the id of its parent and when the kernel had its request, ns
            since 1970. However late the relay reads it, that is when it came.
    """

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)  # its connections have it
        self._port = port
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.log: dict[str, tuple[str, int]] = {}

    def serve(self) -> None:
        """Accept connections until it is closed."""
        with contextlib.suppress(OSError):
            while True:
                downstream, _ = self._listener.accept()
                upstream = socket.create_connection(("127.0.0.1", self._port))
                for ends in ((downstream, upstream), (upstream, downstream)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def close(self) -> None:
        """End it; `serve` returns."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError), sink:
            while True:
                data, control, *_ = source.recvmsg(1 << 16, socket.CMSG_SPACE(STAMP.size))
                if not data:
                    break
                for trace_id, parent in TRACEPARENT.findall(data):
                    ((_, kind, stamp),) = control
                    assert kind == SO_TIMESTAMPNS
                    seconds, nanoseconds = STAMP.unpack(stamp)
                    came_ns = seconds * 10**9 + nanoseconds
                    self.log[trace_id.decode()] = (parent.decode(), came_ns)
                sink.sendall(data)


@contextmanager
def relayed(port: int) -> Iterator[Relay]:
    relay = Relay(port)
    thread = threading.Thread(target=relay.serve)
    thread.start()
    try:
        yield relay
    finally:
        relay.close()
        thread.join(10)


class Receiver(ThreadingHTTPServer):
    """Parses what it gets, as a collector does.

    Attributes:
        spans, metrics: All that came, with the attributes of their resource.
        headers: Those of the last request.
        rejected: How many spans it says that it rejects.
        message: What it says beside that.
        status: What it answers.
        page: What it answers instead of a message of the protocol.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans: list[Any] = []
        self.metrics: dict[str, Any] = {}
        self.resource: dict[str, Any] = {}
        self.headers: dict[str, str] = {}
        self.rejected, self.status = 0, 200
        self.message, self.page = "", b""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        receiver = self.server
        receiver.headers = dict(self.headers)
        answer: Any
        if self.path == "/v1/traces":
            traces = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
            for part in traces.resource_spans:
                receiver.resource = told(part.resource)
                receiver.spans += (span for scope in part.scope_spans for span in scope.spans)
            answer = trace_service_pb2.ExportTraceServiceResponse()
            answer.partial_success.rejected_spans = receiver.rejected
        else:
            metrics = metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)
            for resource in metrics.resource_metrics:
                for scope in resource.scope_metrics:
                    receiver.metrics |= {metric.name: metric for metric in scope.metrics}
            answer = metrics_service_pb2.ExportMetricsServiceResponse()
        answer.partial_success.error_message = receiver.message
        data = receiver.page or answer.SerializeToString()
        self.send_response(receiver.status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *values: object) -> None:
        pass


def told(message: Any) -> dict[str, Any]:
    """The attributes of a message."""
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in message.attributes
    }


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[str, int]]]:
    """The records of a traced run, and the log of its server."""
    path = tmp_path_factory.mktemp("otlp") / "records"
    with simulated() as server, relayed(urlsplit(server.base_url).port or 0) as relay:
        settings = loadgen.RunSettings(
            base_url=relay.url,
            backend="openai-chat",
            tokenizer=TOKENIZER,
            random_input_len=20,
            random_output_len=4,
            request_rate=100,
            num_prompts=COUNT,
            records=str(path),
            trace=True,
        )
        asyncio.run(loadgen.run(settings))
    return path, relay.log


def lines(path: Path) -> list[dict[str, Any]]:
    return list(map(orjson.loads, path.read_bytes().splitlines()[1:-1]))


def test_server_saw_the_ids_of_the_records(traced: Any) -> None:
    path, log = traced
    assert len(log) == COUNT, "of the requests on the clock alone"
    assert {line["trace_id"]: line["span_id"] for line in lines(path)} == {
        trace_id: parent for trace_id, (parent, _) in log.items()
    }


def test_spans_begin_when_the_server_has_its_requests(
    traced: Any, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    path, log = traced
    assert dispatch(["report", str(path), "--otlp", receiver.url]) == 0
    out = capsys.readouterr().out
    assert out == f"Sent to {receiver.url}: {COUNT} spans, 5 metrics\n"
    assert {span.trace_id.hex() for span in receiver.spans} == {*log}
    late_ns = []
    for span in receiver.spans:
        parent, arrival_ns = log[span.trace_id.hex()]
        assert span.span_id.hex() == parent
        late_ns.append(arrival_ns - span.start_time_unix_nano)
    assert min(late_ns) > -SLEW_NS, "no request comes before it was sent"
    assert max(late_ns) < MS, "of all spans"


def test_spans_tell_of_request_and_answer(traced: Any, receiver: Receiver) -> None:
    path, _ = traced
    otlp.export(str(path), f"{receiver.url}/", "VALID")
    assert receiver.resource["service.name"] == "loadgen"
    assert receiver.resource["loadgen.verdict"] == "VALID"
    by_index = {told(span)["loadgen.index"]: span for span in receiver.spans}
    for line in lines(path):
        span = by_index[line["index"]]
        facts = told(span)
        assert span.name == "chat sim"
        assert facts["gen_ai.usage.input_tokens"] == line["prompt_tokens"]
        assert facts["gen_ai.usage.output_tokens"] == line["completion_tokens"] == 4
        lag_ns = line["sent"] - line["ready"] - line["connect"]
        assert facts["loadgen.lag_ms"] == pytest.approx(lag_ns / 1e6)
        assert span.end_time_unix_nano - span.start_time_unix_nano == line["closed"] - line["sent"]
        first = {event.name: event.time_unix_nano for event in span.events}["loadgen.first_token"]
        assert first - span.start_time_unix_nano == line["first_token"] - line["sent"]


def test_histograms_have_the_latencies_of_the_records(traced: Any, receiver: Receiver) -> None:
    path, _ = traced
    otlp.export(str(path), receiver.url, "VALID")
    records = lines(path)
    (point,) = receiver.metrics["gen_ai.client.operation.time_to_first_chunk"].histogram.data_points
    seconds = [(line["first_token"] - line["sent"]) / 1e9 for line in records]
    assert (point.count, point.sum) == (COUNT, pytest.approx(sum(seconds)))
    assert (point.min, point.max) == (pytest.approx(min(seconds)), pytest.approx(max(seconds)))
    bounds = [0.0, *point.explicit_bounds, float("inf")]
    assert list(point.bucket_counts) == [
        sum(low < value <= high for value in seconds) for low, high in pairwise(bounds)
    ]
    usage = receiver.metrics["gen_ai.client.token.usage"].histogram.data_points
    kinds = {told(part)["gen_ai.token.type"]: part.sum for part in usage}
    assert kinds == {"input": sum(line["prompt_tokens"] for line in records), "output": 4 * COUNT}


def test_what_a_collector_refuses_is_an_error(
    traced: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = traced
    monkeypatch.setenv(otlp.HEADERS, "x-key=a%20b, x-other=c")
    receiver.rejected = 3
    with pytest.raises(LoadgenError, match="v1/traces has rejected 3"):
        otlp.export(str(path), receiver.url, "VALID")
    assert (receiver.headers["x-key"], receiver.headers["x-other"]) == ("a b", "c")
    receiver.status = 503
    with pytest.raises(LoadgenError, match=r"v1/traces answered 503.*; name a collector of OTLP"):
        otlp.export(str(path), receiver.url, "VALID")


@pytest.mark.parametrize("url", ["foo", "", "ftp://127.0.0.1:4318", "http://"])
def test_a_url_that_is_none_is_refused(traced: Any, url: str) -> None:
    with pytest.raises(BadInput) as caught:
        otlp.export(str(traced[0]), url, "VALID")
    assert str(caught.value) == (
        f"--otlp: {url!r} is no URL of HTTP; write that of a collector, as in http://127.0.0.1:4318"
    )


def test_a_query_is_refused(traced: Any) -> None:
    with pytest.raises(BadInput, match=r"^--otlp: 'http://.*\?key=1' has a query; write that of"):
        otlp.export(str(traced[0]), "http://127.0.0.1:4318?key=1", "VALID")


def test_a_password_in_the_url_is_not_shown(
    traced: Any, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    own = receiver.url.replace("://", "://me:hunter2@")
    assert dispatch(["report", str(traced[0]), "--otlp", own]) == 0
    assert receiver.headers["Authorization"].startswith("Basic ")
    receiver.status = 503
    for url in (own, "http://me:hunter2@127.0.0.1:1", "http://me:hunter2@"):
        assert dispatch(["report", str(traced[0]), "--otlp", url]) != 0
    assert "hunter2" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("end", ["/v1/traces", "/v1/metrics/", "/v1"])
def test_urls_of_one_collector(traced: Any, receiver: Receiver, end: str) -> None:
    url = f"127.0.0.1:{receiver.server_port}{end}"
    assert otlp.export(str(traced[0]), url, "VALID").spans == COUNT == len(receiver.spans)
    assert receiver.metrics


@pytest.mark.parametrize("pair", ["bad header", "bad header=1", "=1", "x-key=a%0Ab", "x-key"])
def test_a_header_that_is_none_is_refused(
    traced: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, pair: str
) -> None:
    monkeypatch.setenv(otlp.HEADERS, f"x-other=c,{pair}")
    with pytest.raises(BadInput) as caught:
        otlp.export(str(traced[0]), receiver.url, "VALID")
    assert str(caught.value) == f"{otlp.HEADERS}: header 2 is not NAME=VALUE; write NAME=VALUE,..."
    assert not receiver.spans


def test_a_page_is_no_answer_of_a_collector(traced: Any, receiver: Receiver) -> None:
    receiver.page = b"<html>\n<body>Welcome</body>"
    place = f"{receiver.url}/v1/traces"
    with pytest.raises(LoadgenError) as caught:
        otlp.export(str(traced[0]), receiver.url, "VALID")
    assert str(caught.value) == (
        f"--otlp: {place} answered 200 <html> <body>Welcome</body>; "
        "name a collector of OTLP over HTTP"
    )


def test_a_collector_that_is_gone_names_the_flag(traced: Any) -> None:
    with pytest.raises(Unreachable) as caught:
        otlp.export(str(traced[0]), "http://127.0.0.1:1", "VALID")
    assert str(caught.value).startswith("--otlp: http://127.0.0.1:1/v1/traces: no connection")
    assert str(caught.value).endswith("; check the URL, and that the collector runs")


def test_warnings_of_a_collector_are_shown(
    traced: Any, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.message = "use a newer\nversion"
    assert dispatch(["report", str(traced[0]), "--otlp", receiver.url]) == 0
    assert capsys.readouterr().err.splitlines() == ["The collector warns: use a newer version"]
