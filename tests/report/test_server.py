"""Server metrics in the result and on the console, printed only if reported."""

import math

import orjson
from msgspec import structs

from loadgen.metrics.server.series import FIRST, LAST, PromHistogram
from loadgen.metrics.server.telemetry import Gpu, Telemetry
from loadgen.util.accelerators import QUANTITIES
from tests.helpers import saved_json
from tests.helpers.console_lines import section, unwrapped
from tests.helpers.run_facts import answered, result
from tests.helpers.server_scrapes import scrape, scraped, telemetry

RUN = [answered(n, due=n * 100, tokens=[n * 100 + 20, n * 100 + 30]) for n in range(4)]
TTFT = PromHistogram(4, 0.072, {0.01: 0, 0.02: 3, 0.04: 4, math.inf: 4})
SAID = telemetry(
    {
        "requests": 5,
        "generation_tokens": 70,
        "preemptions": 1,
        "prefix_queries": 0,
        "prefix_hits": 0,
    }
    | {"ttft": PromHistogram(0, 0.0, {})},
    {
        "requests": 9,
        "generation_tokens": 78,
        "preemptions": 3,
        "prefix_queries": 80,
        "prefix_hits": 20,
    }
    | {"ttft": TTFT},
    {"running": 1, "waiting": 0, "kv_usage": 0.25},
    {"running": 4, "waiting": 1, "kv_usage": 0.5},
)


def below(telemetry):
    """The lines of the console on the metrics of the server."""
    lines = unwrapped(saved_json.render(result(RUN, telemetry=telemetry)).splitlines())
    found = section(lines, "The server: its cache and its metrics")
    return [line for line in found if not line.startswith("Prefix cache: ")]


def test_server_metrics_are_kept_beside_measured_values():
    said = result(RUN, telemetry=SAID)["loadgen"]["server"]
    assert orjson.loads(orjson.dumps(said["sources"])) == [
        source.to_dict() for source in SAID.sources
    ]
    assert said["levels"] == {
        "running": {"mean": 2.5, "max": 4},
        "waiting": {"mean": 0.5, "max": 1},
        "kv_usage": {"mean": 0.375, "max": 0.5},
    }
    counts = {
        "requests": 4,
        "aborted": None,
        "prompt_tokens": None,
        "generation_tokens": 8,
        "preemptions": 2,
    }
    assert said["counts"] == counts
    assert (said["prefix_hit_rate"], said["spec_acceptance"]) == (0.25, None)
    assert said["ttft_ms"]["server"] == {
        "count": 4,
        "mean": 18.0,
        "p50": [10.0, 20.0],
        "p99": [10.0, 40.0],
    }
    assert said["ttft_ms"]["ours"]["count"] == 4
    assert round(said["ttft_ms"]["ours"]["mean"], 6) == 20
    assert said["output_tokens"] == {"server": 8, "ours": 8}
    assert (said["covers_run"], said["restarts"], said["gpus"]) == (True, 0, [])
    orjson.dumps(said)


def test_the_console_has_it_beside_what_loadgen_measured():
    assert below(SAID) == [
        "Server metrics (http://127.0.0.1:8000/metrics; 4 scrapes):",
        "server  loadgen",
        "TTFT mean, ms from sent                          18.00    20.00",
        "TTFT p50, ms from sent                        10 to 20    20.00",
        "TTFT p99, ms from sent                        10 to 40    20.00",
        "requests ended                                       4        4",
        "output tokens                                        8        8",
        "preemptions                                          2",
        "requests running, mean                   2.5 (max 4.0)",
        "requests waiting, mean                   0.5 (max 1.0)",
        "KV cache in use, mean                37.5% (max 50.0%)",
        "prompt tokens from the prefix cache              25.0%",
    ]


def means(requests: int = 4) -> Telemetry:
    """A server that counted so many requests: TTFT 18 ms, queue 10 and prefill 5 of them."""
    nothing = dict.fromkeys(("queue_sum", "queue_count", "prefill_sum", "prefill_count"), 0)
    return telemetry(
        nothing | {"ttft": PromHistogram(0, 0.0, {})},
        {
            "queue_sum": 0.010 * requests,
            "queue_count": requests,
            "prefill_sum": 0.005 * requests,
            "prefill_count": requests,
            "ttft": PromHistogram(requests, 0.018 * requests, {math.inf: requests}),
        },
    )


def test_means_of_the_parts_of_ttft_add_up_to_the_measured_one():
    said = result(RUN, telemetry=means())["loadgen"]["server"]["means_ms"]
    parts = [said[name] for name in ("path", "front", "queue", "prefill")]
    assert [round(part, 6) for part in parts] == [2, 3, 10, 5]
    assert (said["decode"], said["itl"], said["steps"], said["step_tokens"]) == (None,) * 4
    assert [line.split()[-1] for line in below(means())[5:9]] == [
        "2.000",
        "3.000",
        "10.00",
        "5.000",
    ]


def test_path_and_front_end_are_unknown_where_the_server_counted_other_requests():
    said = result(RUN, telemetry=means(requests=5))["loadgen"]["server"]["means_ms"]
    assert (said["path"], said["front"]) == (None, None)
    assert round(said["queue"], 6) == 10
    assert "front end" not in " ".join(below(means(requests=5)))


def test_who_said_times_is_written_and_that_asking_costs():
    timed = answered(due=0, tokens=[20, 30])
    timed.add_times({"by": "vllm", "queue": 5})
    told = saved_json.render(result([timed], telemetry=SAID))
    assert "Times of the server: said by vllm of 1 request; this costs it CPU time" in told
    assert "Times of the server" not in saved_json.render(result(RUN, telemetry=SAID))


def test_result_without_telemetry_has_no_server_part_and_the_console_says_why():
    assert result(RUN)["loadgen"]["server"] is None
    assert below(Telemetry()) == [
        "No server metrics: --server-metrics was off, or the server has no metrics that are known."
    ]


def test_unreported_metrics_are_not_printed():
    assert below(telemetry({"running": 0}, {"running": 0}, {"running": 2})) == [
        "Server metrics (http://127.0.0.1:8000/metrics; 3 scrapes):",
        "server  loadgen",
        "requests running, mean  2.0 (max 2.0)",
    ]


def test_scrapes_that_failed_and_sources_are_counted():
    def source(url):
        return scraped(
            scrape(-1, FIRST, url=url, running=0),
            scrape(1, url=url, failed="no answer"),
            scrape(2, LAST, url=url),
        )

    lines = below(Telemetry((source("http://a/metrics"), source("http://b/metrics"))))
    assert lines[0] == "Server metrics (2 sources; 6 scrapes, 2 failed):"


def test_a_percentile_in_the_last_bucket_lies_above_its_bound():
    slow = PromHistogram(4, 40.0, {0.01: 0, 5.0: 0, math.inf: 4})
    lines = below(
        telemetry({"running": 0, "ttft": PromHistogram(0, 0.0, {})}, {"running": 0, "ttft": slow})
    )
    assert [line.split()[-3:-1] for line in lines[-2:]] == [["above", "5000"]] * 2


def test_a_server_that_keeps_no_buckets_has_a_mean():
    plain = PromHistogram(4, 0.08, {})
    lines = below(
        telemetry({"running": 0, "ttft": PromHistogram(0, 0.0, {})}, {"running": 0, "ttft": plain})
    )
    assert [line.split()[-2] for line in lines if " p50" in line or " p99" in line] == [
        "n/a",
        "n/a",
    ]


def test_gpus_are_summed_up_in_a_line():
    def gpu(**series):
        told = {quantity: [None, None, None] for quantity in QUANTITIES}
        return Gpu(
            "H200",
            [-0.1, 0.9, 1.9],
            told | {name: [0.0, *values] for name, values in series.items()},
        )

    one = gpu(
        power_w=[300.0, 500.0],
        busy_share=[0.5, 0.7],
        sm_clock_mhz=[1500.0, 1700.0],
        memory_bytes=[1e9, 2e9],
    )
    both = Telemetry(SAID.sources, (one, structs.replace(one)))
    assert below(both)[-1] == "GPUs (2): 800 W on average, 60% busy, 1600 MHz, 4.0 GB in use"
    assert below(Telemetry((), (gpu(),))) == ["GPUs (1): n/a"]
    said = result(RUN, telemetry=both)["loadgen"]["server"]
    assert said["gpu_levels"][0]["power_w"] == {"mean": 400.0, "max": 500.0}
    assert said["gpus"][0] == structs.asdict(one)
