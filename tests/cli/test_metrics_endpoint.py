"""The metrics endpoint: the values that Prometheus parses are those of the progress."""

import gzip
import socket
import threading
import urllib.error
import urllib.request
from urllib.request import Request

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from loadgen.cli.runs.metrics_endpoint import BOUNDS_NS, Metrics, MetricsApp, buckets, serve_metrics
from loadgen.config.settings import RunSettings
from loadgen.core.histogram import Histogram
from loadgen.core.sketch import Sketch
from loadgen.errors import BadInput
from loadgen.metrics.progress import DONE, LATENCIES, Progress
from loadgen.runner.server import Server
from loadgen.version import __version__
from tests.helpers.live_text import running, sketch


def told(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The samples, by name and labels."""
    families = text_string_to_metric_families(text)
    return {
        (one.name, tuple(one.labels.items())): one.value
        for family in families
        for one in family.samples
    }


def scraped(metrics: Metrics) -> str:
    """The text of the metrics, passed on to a scraper."""
    registry = CollectorRegistry()
    registry.register(metrics)
    text = generate_latest(registry).decode()
    if metrics.final:
        metrics.mark_final_scraped()
    return text


def of(progress: Progress) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    metrics = Metrics()
    metrics.update(progress)
    return told(scraped(metrics))


def test_metrics_hold_every_known_value() -> None:
    failures = {"refused": 2, 'odd"\\\n': 1}
    found = of(
        running(10, failures=failures, cap=64, waiting=5, server={"running": 98, "kv_usage": 0.25})
    )
    for outcome, count in ({"ok": 900} | failures).items():
        assert found["loadgen_requests_total", (("outcome", outcome),)] == count
    plain = {name: value for (name, labels), value in found.items() if not labels}
    assert (
        plain.items()
        >= {
            "loadgen_elapsed_seconds": 10,
            "loadgen_requests_scheduled": 6000,
            "loadgen_requests_due_total": 1005,
            "loadgen_requests_sent_total": 1000,
            "loadgen_in_flight": 100,
            "loadgen_in_flight_limit": 64,
            "loadgen_oldest_request_seconds": 1,
            "loadgen_waiting": 5,
            "loadgen_output_tokens_total": 9000,
            "loadgen_streamed_tokens_total": 9500,
            "loadgen_loop_busy_ratio": 0.12,
            "loadgen_server_running": 98,
            "loadgen_server_kv_usage_ratio": 0.25,
            "loadgen_ttft_seconds_count": 100,
            "loadgen_ttft_seconds_sum": pytest.approx(4.08),
        }.items()
    )
    assert "loadgen_server_waiting" not in plain


def test_families_have_types_and_labels_as_text_may_hold_them() -> None:
    metrics = Metrics()
    metrics.identify(Server(RunSettings(label='odd"\\\n'), "modèle"))
    metrics.update(
        running(10, failures={'odd"\\\n': 1}, cap=64, server={"running": 98, "kv_usage": 0.25})
    )
    text = scraped(metrics)
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["loadgen_requests"].type == families["loadgen_output_tokens"].type == "counter"
    assert families["loadgen_in_flight"].type == families["loadgen_run_info"].type == "gauge"
    assert families["loadgen_ttft_seconds"].type == "histogram"
    assert families["loadgen_run_info"].samples[0].labels["label"] == 'odd"\\\n'
    assert "# HELP loadgen_waiting Requests that are due and have not been sent.\n" in text


def test_once_it_is_done_all_of_it_is_told() -> None:
    found = of(running(61.0, DONE))
    assert (
        found["loadgen_requests_total", (("outcome", "ok"),)]
        == found["loadgen_requests_sent_total", ()]
        == 6000
    )
    assert found["loadgen_in_flight", ()] == 0


def test_unknown_values_are_left_out() -> None:
    found = {name for name, _ in of(Progress("connecting"))}
    assert not found & {
        "loadgen_requests_scheduled",
        "loadgen_in_flight_limit",
        "loadgen_server_running",
    }
    assert {f"loadgen_{name}_seconds_count" for name in LATENCIES} <= found


def test_buckets_are_exact_counts_of_what_is_no_greater_than_their_bounds() -> None:
    values = [0, 1000, 4095, 4096, 1_000_000, 1_048_575, 1_048_576, 40_000_000, 10**13]
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    for bound, count in buckets(Sketch.of(histogram)):
        assert count == sum(value / 1e9 <= float(bound) for value in values)
    assert [float(bound) for bound, _ in buckets(Sketch())][:-1] == [
        (bound - 1) / 1e9 for bound in BOUNDS_NS
    ]


def test_bounds_are_the_same_for_every_run() -> None:
    one, other = (
        [bound for bound, _ in buckets(made)] for made in (Sketch(), sketch(1, 10, 10_000))
    )
    assert one == other


# -- of which run


def identified(settings: RunSettings) -> dict[str, str]:
    """The labels of the run's identity."""
    metrics = Metrics()
    metrics.identify(Server(settings, "a/model"))
    ((_, labels),) = [one for one in told(scraped(metrics)) if one[0] == "loadgen_run_info"]
    return dict(labels)


def test_a_run_is_identified_by_one_gauge() -> None:
    settings = RunSettings(
        base_url="http://me:secret@gpu-1:8000",
        label="nightly",
        request_rate=4.5,
        max_concurrency=64,
    )
    assert identified(settings) == {
        "model": "a/model",
        "target": "http://gpu-1:8000",
        "label": "nightly",
        "rate": "4.5",
        "max_concurrency": "64",
        "version": __version__,
    }


@pytest.mark.parametrize(
    ("settings", "rate"),
    [
        (RunSettings(), "inf"),
        (
            RunSettings(ramp_up_strategy="linear", ramp_up_start_rps=1, ramp_up_end_rps=20),
            "1 to 20",
        ),
        (RunSettings(dataset_name="trace"), "by the data set"),
    ],
)
def test_the_asked_rate_is_named_however_it_was_asked(settings: RunSettings, rate: str) -> None:
    assert identified(settings)["rate"] == rate


def test_every_target_is_named() -> None:
    assert (
        identified(RunSettings(base_url=("http://a:1", "http://b:2")))["target"]
        == "http://a:1, http://b:2"
    )


def test_a_run_whose_server_is_not_known_has_no_identity() -> None:
    assert not [name for name, _ in of(running(10)) if name == "loadgen_run_info"]


# -- until when


def asked_at(*times_s: float, now_s: float | None = None) -> Metrics:
    """Metrics that were asked for at these times, and are now, by default right after, those of
    a run that is done.
    """
    times, last_s = iter(times_s), times_s[-1] if times_s else 0.0
    metrics = Metrics(lambda: next(times, last_s if now_s is None else now_s))
    metrics.update(running(10))
    for _ in times_s:
        scraped(metrics)
    metrics.update(running(61.0, DONE))
    return metrics


@pytest.mark.parametrize(
    ("times_s", "wait_s"), [((), 0), ((5,), 0), ((5, 20), 22.5), ((0, 5, 20), 22.5), ((0, 300), 60)]
)
def test_repeated_scraper_gets_time_for_a_last_scrape(
    times_s: tuple[float, ...], wait_s: float
) -> None:
    assert asked_at(*times_s).wait_s == wait_s


def test_endpoint_does_not_wait_after_the_final_scrape() -> None:
    metrics = asked_at(5, 20, now_s=35)
    scraped(metrics)
    assert metrics.wait_s == 0
    metrics.update(running(61.0, DONE))  # of the next run
    assert metrics.wait_s > 0
    metrics.update(Progress("connecting"))
    assert metrics.wait_s == 0


def test_scraper_of_long_ago_is_not_waited_for() -> None:
    assert asked_at(0, 60, now_s=3600).wait_s == 0


def test_the_wait_is_over_as_soon_as_somebody_has_asked() -> None:
    metrics = asked_at(5, 65)
    waiting = threading.Thread(target=metrics.wait, daemon=True)
    waiting.start()
    scraped(metrics)
    waiting.join(30)
    assert not waiting.is_alive()


# -- where


@pytest.fixture
def port() -> int:
    """One that is free."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


@pytest.mark.integration
def test_endpoint_listens_on_loopback_inside_its_context(
    port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"http://127.0.0.1:{port}/metrics"
    with serve_metrics(RunSettings(prometheus=str(port))) as metrics:
        metrics.update(running(10))
        with urllib.request.urlopen(url, timeout=10) as reply:
            assert reply.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert told(reply.read().decode())["loadgen_in_flight", ()] == 100
    assert capsys.readouterr().err == f"loadgen: metrics at {url}\n"
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url, timeout=10)


def fetched(port: int, query: str = "", **headers: str) -> tuple[str, bytes]:
    """The type and the body of an answer."""
    request = Request(f"http://127.0.0.1:{port}/metrics{query}", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as reply:
        assert int(reply.headers["Content-Length"]) > 0
        body = reply.read()
        if reply.headers.get("Content-Encoding") == "gzip":
            body = b"gzip " + gzip.decompress(body)
        return reply.headers["Content-Type"], body


@pytest.mark.integration
def test_a_scraper_may_ask_for_openmetrics(port: int) -> None:
    with serve_metrics(RunSettings(prometheus=str(port), quiet=True)) as metrics:
        metrics.identify(Server(RunSettings(label="nightly"), "a/model"))
        metrics.update(running(10))
        kind, body = fetched(
            port, Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
        )
    assert kind.startswith("application/openmetrics-text; version=")
    families = {
        family.name: family for family in openmetrics.text_string_to_metric_families(body.decode())
    }
    assert families["loadgen_run"].type == "info"
    assert families["loadgen_run"].samples[0].labels["label"] == "nightly"
    assert families["loadgen_in_flight"].samples[0].value == 100


@pytest.mark.integration
def test_a_scraper_may_ask_for_gzip(port: int) -> None:
    with serve_metrics(RunSettings(prometheus=str(port), quiet=True)) as metrics:
        metrics.update(running(10))
        _, plain = fetched(port)
        _, body = fetched(port, **{"Accept-Encoding": "gzip"})
    assert body == b"gzip " + plain


@pytest.mark.integration
@pytest.mark.parametrize(
    "name", ["loadgen_in_flight", "loadgen_server_running", "loadgen_requests_total"]
)
def test_a_scraper_may_ask_for_metrics_by_name(port: int, name: str) -> None:
    with serve_metrics(RunSettings(prometheus=str(port), quiet=True)) as metrics:
        metrics.update(running(10, server={"running": 98}))
        _, body = fetched(port, f"?name[]={name}")
    assert {sample for sample, _ in told(body.decode())} == {name}


def test_values_that_did_not_reach_the_scraper_are_waited_for() -> None:
    metrics = asked_at(5, 20, now_s=35)
    request = {"REQUEST_METHOD": "GET", "PATH_INFO": "/metrics"}
    answer = MetricsApp(metrics)(request, lambda *_: lambda _: None)
    assert b"loadgen_in_flight" in next(answer)
    assert metrics.wait_s > 0, "it is not yet written to the socket"
    assert list(answer) == []
    assert metrics.wait_s == 0


@pytest.mark.integration
def test_endpoint_answers_only_get(port: int) -> None:
    url = f"http://127.0.0.1:{port}"
    with serve_metrics(RunSettings(prometheus=str(port), quiet=True)):
        for method in ("HEAD", "POST", "PUT"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=10)
            assert (refused.value.code, refused.value.headers["Allow"]) == (405, "GET")
            refused.value.close()
        with urllib.request.urlopen(f"{url}/?any=path", timeout=10) as reply:
            assert told(reply.read().decode())["loadgen_in_flight", ()] == 0


@pytest.mark.integration
def test_browser_that_looks_for_an_icon_is_no_scraper(port: int) -> None:
    with serve_metrics(RunSettings(prometheus=str(port), quiet=True)) as metrics:
        for _ in range(2):
            with urllib.request.urlopen(
                f"http://127.0.0.1:{port}/favicon.ico", timeout=10
            ) as reply:
                assert reply.read() == b""
        metrics.update(running(61.0, DONE))
        assert metrics.wait_s == 0


@pytest.mark.integration
def test_endpoint_listens_on_ipv6() -> None:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6) as unused:
            place = f"[::1]:{unused.getsockname()[1]}"
    except OSError:
        pytest.skip("this machine has no IPv6")
    url = f"http://{place}/metrics"
    with (
        serve_metrics(RunSettings(prometheus=place, quiet=True)),
        urllib.request.urlopen(url, timeout=10) as reply,
    ):
        assert told(reply.read().decode())["loadgen_elapsed_seconds", ()] == 0


@pytest.mark.integration
def test_a_port_in_use_is_refused_by_name() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(BadInput) as refused, serve_metrics(RunSettings(prometheus=place)):
            pass
    assert str(refused.value).startswith(
        f"--prometheus: cannot listen on {place} (Address already in use); give a free port"
    )


@pytest.mark.parametrize(
    "text", ["0", "65536", "http", ":9100", "localhost", "localhost:", "::1:9100", "1" * 5000, "-1"]
)
def test_invalid_listen_address_is_refused(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        RunSettings(prometheus=text).checked()
    assert refused.value.field == "--prometheus"


@pytest.mark.parametrize(
    "text", ["9100", "127.0.0.1:9100", "0.0.0.0:9100", "[::1]:9100", "node-3:65535"]
)
def test_a_port_is_one_with_a_host_before_it_or_without(text: str) -> None:
    assert RunSettings(prometheus=text).checked().prometheus == text


def test_prompts_that_are_made_are_no_requests() -> None:
    found = of(Progress("preparing", 8.0, scheduled=6000, ended=5000))
    assert found["loadgen_requests_sent_total", ()] == found["loadgen_elapsed_seconds", ()] == 0
