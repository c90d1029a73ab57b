"""Series of scrapes: gauges are unchanged, counters count from the start, gaps stay gaps."""

import math

import orjson

from loadgen.metrics.server.series import FIRST, LAST, PromHistogram, Scrape, Source, SourceSeries
from tests.helpers.server_scrapes import scrape, scraped

INF = math.inf


def test_levels_are_as_they_were_and_counts_from_the_first_scrape_on():
    one = scraped(
        scrape(-0.5, FIRST, running=0, generation_tokens=100),
        scrape(1, running=3, generation_tokens=150),
        scrape(2, running=2, generation_tokens=220),
        scrape(2.5, LAST, running=0, generation_tokens=250),
    )
    assert one.series == {"running": [0, 3, 2, 0], "generation_tokens": [0, 50, 120, 150]}
    assert one.increase("generation_tokens") == 150
    assert one.increase("requests") is None
    assert one.at_s == [-0.5, 1, 2, 2.5]
    assert one.took_ms == [2, 2, 2, 2]
    assert one.names == {"running": "vllm:running", "generation_tokens": "vllm:generation_tokens"}
    assert one.covers


def test_a_scrape_that_failed_leaves_a_hole_and_no_more():
    one = scraped(
        scrape(-0.5, FIRST, generation_tokens=100),
        scrape(1, failed="no answer", took_ms=2000),
        scrape(3, generation_tokens=180),
        scrape(4, LAST, generation_tokens=190),
    )
    assert one.series["generation_tokens"] == [0, None, 80, 90]
    assert one.failed == [None, "no answer", None, None]
    assert one.took_ms[1] == 2000
    assert one.restarts == 0
    assert one.covers


def test_run_is_not_covered_without_scrapes_before_and_after():
    assert not scraped(
        scrape(-1, FIRST, failed="status 500"), scrape(1, running=1), scrape(2, LAST, running=0)
    ).covers
    assert not scraped(
        scrape(-1, FIRST, running=0), scrape(1, running=1), scrape(2, LAST, failed="no answer")
    ).covers
    assert not scraped(scrape(-1, FIRST, running=0), scrape(1, running=1)).covers


def test_several_last_answers_are_all_the_end_and_the_latest_counts():
    one = scraped(
        scrape(-1, FIRST, requests=5),
        scrape(2, LAST, requests=9),
        scrape(2.1, LAST, requests=10),
        scrape(2.2, LAST, failed="no answer"),
    )
    assert one.increase("requests") == 5
    assert one.covers


def test_counter_reset_goes_on_and_counts_one_restart():
    def buckets(count):
        return PromHistogram(count, count * 0.5, {1.0: count, INF: count})

    one = scraped(
        scrape(-1, FIRST, generation_tokens=1000, requests=10, ttft=buckets(10)),
        scrape(1, generation_tokens=1100, requests=12, ttft=buckets(12)),
        scrape(2, generation_tokens=30, requests=1, ttft=buckets(1)),
        scrape(3, LAST, generation_tokens=50, requests=2, ttft=buckets(2)),
    )
    assert one.series["generation_tokens"] == [0, 100, 130, 150]
    assert one.increase("requests") == 4
    assert one.ttft == PromHistogram(4, 2.0, {1.0: 4, INF: 4})
    assert one.restarts == 1


def test_metric_that_appears_late_was_zero_before():
    one = scraped(
        scrape(-1, FIRST, running=0),
        scrape(1, running=1, generation_tokens=40, ttft=PromHistogram(2, 0.5, {INF: 2})),
        scrape(2, LAST, running=0, generation_tokens=60, ttft=PromHistogram(3, 0.75, {INF: 3})),
    )
    assert one.increase("generation_tokens") == 60
    assert one.series["generation_tokens"] == [None, 40, 60]
    assert one.ttft == PromHistogram(3, 0.75, {INF: 3})
    assert one.restarts == 0


def test_metric_unknown_before_the_run_counts_from_first_value():
    one = scraped(
        scrape(-1, FIRST, failed="no answer"), scrape(1, requests=40), scrape(2, LAST, requests=60)
    )
    assert one.increase("requests") == 20


def test_a_name_that_was_spelled_otherwise_later_keeps_its_first_spelling():
    later = scrape(1, running=1)
    later.names["running"] = "other"
    assert scraped(scrape(-1, FIRST, running=0), later).names == {"running": "vllm:running"}


def test_scrapes_and_series_are_read_back_from_json():
    first = scrape(-1, FIRST, running=0, ttft=PromHistogram(2, 1.0, {0.5: 1, INF: 2}))
    assert Scrape.from_dict(orjson.loads(orjson.dumps(first.to_dict()))) == first
    failed = scrape(1, failed="no answer")
    assert Scrape.from_dict(orjson.loads(orjson.dumps(failed.to_dict()))) == failed
    one = scraped(
        first, failed, scrape(2, LAST, running=0, ttft=PromHistogram(3, 1.5, {0.5: 1, INF: 3}))
    )
    assert SourceSeries.from_dict(orjson.loads(orjson.dumps(one.to_dict()))) == one


def test_a_source_does_not_show_its_credentials():
    assert "sk-secret" not in repr(
        Source("http://h/metrics", "http://h", {"Authorization": "Bearer sk-secret"})
    )
