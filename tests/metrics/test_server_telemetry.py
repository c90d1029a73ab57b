"""Telemetry of several servers as one, and what a run leaves in its folder."""

import math

import orjson
import pytest
from msgspec import structs

from loadgen.metrics.server.series import FIRST, LAST, PromHistogram
from loadgen.metrics.server.telemetry import FILE_NAME, Gpu, Telemetry
from tests.helpers.run_facts import START
from tests.helpers.server_scrapes import scrape, scraped, telemetry

GPU = {
    "name": "H200",
    "power_w": 400.0,
    "sm_clock_mhz": 1980.0,
    "busy_share": 0.9,
    "memory_bytes": 1e10,
}


def two(**second):
    """Two servers that were asked at the same times; `second` says what is unlike of the other."""

    def source(url, before, between, after):
        return scraped(
            scrape(-1, FIRST, url=url, **before),
            scrape(1, url=url, **between),
            scrape(2, LAST, url=url, **after),
        )

    told = ({"requests": 0}, {"running": 3, "kv_usage": 0.2, "requests": 2}, {"requests": 5})
    other = tuple({name: second.get(name, value) for name, value in part.items()} for part in told)
    return Telemetry((source("http://a/metrics", *told), source("http://b/metrics", *other)))


def test_levels_are_those_of_the_time_between_first_and_last():
    said = telemetry({"running": 9}, {"running": 8}, {"running": 1}, {"running": 3})
    assert said.levels("running") == [1, 3]
    assert said.levels("waiting") == []


def test_several_servers_sum_counts_and_take_the_highest_share():
    said = two(kv_usage=0.7, running=4)
    assert said.levels("running") == [7]
    assert said.levels("kv_usage") == [0.7]
    assert said.increase("requests") == 10


def test_value_unknown_to_a_server_is_unknown_in_total():
    said = two()
    silent = structs.replace(said.sources[1], series={"running": [None, None, None]}, names={})
    said = Telemetry((said.sources[0], silent))
    assert said.levels("running") == []
    assert said.increase("requests") is None
    assert said.ttft is None


def test_times_to_first_token_of_several_servers_are_one_distribution():
    def source(url, count):
        after = PromHistogram(count, count * 0.5, {math.inf: count})
        return scraped(
            scrape(-1, FIRST, url=url, ttft=PromHistogram(0, 0.0, {})),
            scrape(1, LAST, url=url, ttft=after),
        )

    said = Telemetry((source("http://a", 2), source("http://b", 3)))
    assert said.ttft == PromHistogram(5, 2.5, {math.inf: 5})


def test_a_run_is_covered_and_restarts_are_counted_over_all_servers():
    assert two().covers
    open_ended = scraped(
        scrape(-1, FIRST, url="http://c", requests=9), scrape(1, url="http://c", requests=1)
    )
    said = Telemetry((*two().sources, open_ended))
    assert not said.covers
    assert (two().restarts, said.restarts) == (0, 1)


@pytest.mark.parametrize(
    ("after", "rate"),
    [
        ({"prefix_queries": 200, "prefix_hits": 50}, 0.25),
        ({"prefix_misses": 150, "prefix_hits": 50}, 0.25),
        ({"prefix_queries": 0, "prefix_hits": 0}, None),
        ({"prefix_misses": 200}, None),
        ({}, None),
    ],
)
def test_the_prefix_hit_rate_is_of_the_run(after, rate):
    before = dict.fromkeys(after, 0)
    assert telemetry({"running": 0} | before, {"running": 0} | after).prefix_hit_rate == rate


def test_acceptance_is_of_the_run_or_else_the_mean_of_what_batches_had():
    counted = telemetry(
        {"drafted_tokens": 10, "accepted_tokens": 10},
        {"drafted_tokens": 110, "accepted_tokens": 80},
    )
    assert counted.spec_acceptance == 0.7
    batches = telemetry(
        {"running": 0}, {"running": 0}, {"batch_acceptance": 0.4}, {"batch_acceptance": 0.6}
    )
    assert batches.spec_acceptance == 0.5
    assert telemetry({"drafted_tokens": 0, "accepted_tokens": 0}, {}).spec_acceptance is None


def test_the_fastest_answer_is_one_that_was_given():
    source = scraped(
        scrape(-1, FIRST, running=0, took_ms=5), scrape(1, failed="no answer", took_ms=0.1)
    )
    assert Telemetry((source,)).fastest_ms == 5
    assert Telemetry().fastest_ms is None


def test_telemetry_is_read_back_from_json():
    said = Telemetry(two().sources, (Gpu("H200", [0.5], {"power_w": [300.0, None]}),))
    assert Telemetry.from_dict(orjson.loads(orjson.dumps(said.to_dict()))) == said


def test_telemetry_is_read_from_the_files_of_a_scraper(tmp_path):
    told = [
        scrape(-1, FIRST, requests=1).to_dict(),
        {"asked_ns": START - 10**9, "gpus": [GPU, GPU]},
    ]
    told += [
        scrape(1, LAST, requests=4).to_dict(),
        {"asked_ns": START + 10**9, "gpus": [GPU | {"power_w": None}, GPU]},
    ]
    (tmp_path / FILE_NAME).write_bytes(
        b"".join(orjson.dumps(line) + b"\n" for line in told) + b'{"url": "cut o'
    )
    said = Telemetry.left_in(tmp_path, START)
    assert said.increase("requests") == 3
    assert [gpu.name for gpu in said.gpus] == ["H200", "H200"]
    assert said.gpus[0].at_s == [-1, 1]
    assert said.gpus[0].series["power_w"] == [400, None]
    assert said.gpus[1].series["power_w"] == [400, 400]


def test_source_without_known_metrics_is_left_out(tmp_path):
    lines = [scrape(-1, FIRST), scrape(1, LAST, failed="status 500")]
    (tmp_path / FILE_NAME).write_bytes(
        b"".join(orjson.dumps(line.to_dict()) + b"\n" for line in lines)
    )
    assert Telemetry.left_in(tmp_path, START) == Telemetry()


def test_silent_source_beside_another_is_missing(tmp_path):
    silent = "http://127.0.0.1:9000/metrics"
    lines = [scrape(-1, FIRST, requests=1), scrape(-1, FIRST, failed="no answer", url=silent)]
    lines += [scrape(1, LAST, requests=4), scrape(1, LAST, failed="no answer", url=silent)]
    (tmp_path / FILE_NAME).write_bytes(
        b"".join(orjson.dumps(line.to_dict()) + b"\n" for line in lines)
    )
    said = Telemetry.left_in(tmp_path, START, ("http://127.0.0.1:7000",))
    assert said.missing == ("http://127.0.0.1:7000", silent)
    assert not said.covers
    assert Telemetry.from_dict(orjson.loads(orjson.dumps(said.to_dict()))) == said


def test_telemetry_is_empty_without_scrapes(tmp_path):
    assert Telemetry.left_in(tmp_path, START) == Telemetry()
