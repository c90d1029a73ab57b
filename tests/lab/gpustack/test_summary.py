"""The summary of a run that GPUStack reads: guidellm's names with our times."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.lab.gpustack.steps import Strategy
from loadgen.lab.gpustack.summary import coverage, summarize
from loadgen.lab.gpustack.transient import NO_TRANSIENTS, Transient, Transients
from loadgen.metrics.records.file import RecordFile, RecordWriter
from loadgen.workload.arrivals import Schedule
from tests.helpers import saved_json
from tests.helpers.gpustack_contract import GUIDELLM, SCHEMA, at, refusals
from tests.helpers.run_facts import (
    START,
    answered,
    failed,
    heading,
    per_event,
    result,
    steady,
    unsent,
)

SETTINGS = RunSettings(
    base_url="http://127.0.0.1:1", endpoint="/v1/chat/completions", backend="openai-chat"
)
STRATEGY = Strategy("constant", 20.0, 512)


@pytest.fixture
def summary(tmp_path: Path) -> Any:
    def of(records: Iterable[Record], phases: Transients = NO_TRANSIENTS) -> dict[str, Any]:
        kept = list(records)
        path = tmp_path / "7.records.jsonl"
        schedule = Schedule.burst(max(len(kept), 1))
        with RecordWriter.optional(path) as writer:
            assert writer is not None
            writer.begin(heading(SETTINGS, schedule), START, len(kept), [])
            for record in kept:
                writer.write(record)
        return summarize(
            RecordFile(path), STRATEGY, saved_json.result(result(kept, SETTINGS)), phases
        )

    return of


def value(
    summary: dict[str, Any], metric: str, statistic: str = "mean", status: str = "successful"
) -> float:
    return at(summary, f"benchmarks.0.metrics.{metric}.{status}.{statistic}")


class TestGpustacksReader:
    def test_takes_a_whole_run_and_finds_every_column(self, summary: Any) -> None:
        made = summary(steady(i, due=100 * i, n=5) for i in range(10))
        assert refusals(made) == []
        for path in {
            **SCHEMA["extracted"],
            **SCHEMA["extracted_later"],
            **SCHEMA["shown"],
        }.values():
            assert at(made, path) >= 0

    @pytest.mark.parametrize(
        "records",
        [
            [],
            [failed(0)],
            [unsent(0)],
            [failed(0, Outcome.CANCELLED)],
            [answered(0, tokens=(20,))],
            [
                steady(0),
                failed(1, Outcome.STATUS),
                failed(2, Outcome.CANCELLED),
                unsent(3),
                failed(4, Outcome.REFUSED),
            ],
        ],
        ids=["nothing", "errors", "no connection", "interrupted", "one token", "everything"],
    )
    def test_takes_whatever_a_run_has_left(self, summary: Any, records: list[Record]) -> None:
        assert refusals(summary(records)) == []

    def test_would_refuse_a_null_and_a_missing_number(self, summary: Any) -> None:
        made = summary([steady(0)])
        del made["benchmarks"][0]["metrics"]["tokens_per_second"]["successful"]["percentiles"][
            "p99"
        ]
        made["benchmarks"][0]["metrics"]["request_latency"]["errored"]["mean"] = None
        assert refusals(made) == [
            "request_latency.errored.mean: None",
            "tokens_per_second.successful.percentiles.p99: None",
        ]


class TestMeaning:
    def test_a_request_by_hand(self, summary: Any) -> None:
        """Sent at 0, tokens at 20, 30, ..., 60 ms, closed at 100 ms."""
        made = summary([answered(0, tokens=(20, 30, 40, 50, 60), closed=100)])
        assert value(made, "request_latency") == pytest.approx(0.1)
        assert value(made, "time_to_first_token_ms") == pytest.approx(20)
        # The first token's wait included.
        assert value(made, "time_per_output_token_ms") == pytest.approx(60 / 5)
        assert value(made, "inter_token_latency_ms") == pytest.approx(40 / 4)
        assert value(made, "inter_token_latency_per_chunk_ms") == pytest.approx(10)
        assert value(made, "request_streaming_iterations_count") == 5
        counts = [value(made, f"{of}_token_count") for of in ("prompt", "output", "total")]
        assert counts == [10, 5, 15]
        assert made["benchmarks"][0]["duration"] == pytest.approx(0.1)
        rates = [value(made, f"{of}tokens_per_second") for of in ("prompt_", "output_", "")]
        assert rates == pytest.approx([100, 50, 150])
        assert value(made, "requests_per_second") == pytest.approx(10)
        assert value(made, "request_concurrency") == pytest.approx(1)

    def test_a_wait_for_a_slot_is_no_part_of_a_latency(self, summary: Any) -> None:
        made = summary([answered(0, due=0, ready=500, tokens=(520, 530, 540))])
        assert value(made, "time_to_first_token_ms") == pytest.approx(20)

    def test_a_long_answer_weighs_more_in_times_per_token(self, summary: Any) -> None:
        made = summary([steady(0, gap=10, n=2), steady(1, gap=20, n=4)])
        assert value(made, "inter_token_latency_ms") == pytest.approx((10 * 1 + 20 * 3) / 4)
        assert value(made, "inter_token_latency_ms", "count") == 4

    def test_an_answer_of_one_token_has_no_time_between_tokens(self, summary: Any) -> None:
        made = summary([answered(0, tokens=(20,)), steady(1, gap=10, n=2)])
        assert value(made, "inter_token_latency_ms", "min") == pytest.approx(10)
        assert value(made, "time_to_first_token_ms", "count") == 2

    def test_an_event_of_several_tokens_counts_as_them(self, summary: Any) -> None:
        made = summary([per_event((20, 1), (30, 5), (40, 9))])
        assert value(made, "output_tokens_per_iteration", "max") == 4
        assert value(made, "iter_tokens_per_iteration") == pytest.approx(4)
        assert value(made, "request_streaming_iterations_count") == 3
        assert value(made, "output_token_count") == 9

    def test_usage_decides_how_many_tokens_there_are_and_they_come_with_the_events(
        self, summary: Any
    ) -> None:
        made = summary(
            [
                answered(
                    0,
                    tokens=(20, 30),
                    counts={"prompt_tokens": 12, "completion_tokens": 6},
                    closed=1000,
                )
            ]
        )
        assert value(made, "prompt_token_count") == 12
        assert value(made, "output_token_count") == 6
        assert value(made, "output_tokens_per_second") == pytest.approx(6)

    def test_each_ending_is_one_of_guidellms_statuses(self, summary: Any) -> None:
        ends = [
            steady(0),
            steady(1),
            failed(2, Outcome.STATUS),
            unsent(3),
            failed(4, Outcome.CANCELLED),
        ]
        totals = at(summary(ends), "benchmarks.0.metrics.request_totals")
        assert totals == {"successful": 2, "errored": 2, "incomplete": 1, "total": 5}

    def test_cancelled_unsent_request_is_not_incomplete(self, summary: Any) -> None:
        totals = at(
            summary([steady(0), unsent(1, Outcome.CANCELLED)]),
            "benchmarks.0.metrics.request_totals",
        )
        assert totals == {"successful": 1, "errored": 0, "incomplete": 0, "total": 1}

    def test_errors_are_told_with_what_the_server_said(self, summary: Any) -> None:
        made = summary([steady(0), failed(1, Outcome.STATUS, detail="no\x1b[31m room")])
        (told,) = made["benchmarks"][0]["requests_truncated"]["errored"]
        assert told["info"]["error"].startswith("status 503: no")
        assert "\x1b" not in told["info"]["error"]
        assert told["request_type"] == "chat_completions"

    def test_at_most_twenty_of_them(self, summary: Any) -> None:
        made = summary(failed(i) for i in range(25))
        assert len(made["benchmarks"][0]["requests_truncated"]["errored"]) == 20
        assert at(made, "benchmarks.0.metrics.request_totals.errored") == 25

    def test_a_run_without_failures_tells_of_none(self, summary: Any) -> None:
        assert "requests_truncated" not in summary([steady(0)])["benchmarks"][0]

    def test_times_are_those_of_the_wall_clock(self, summary: Any) -> None:
        made = summary([steady(0)])["benchmarks"][0]
        now_s = time.time() - (time.monotonic_ns() - START) / 1e9
        assert made["start_time"] == pytest.approx(now_s, abs=60)

    def test_unmeasured_gaps_are_left_out(self, summary: Any) -> None:
        made = summary([answered(0, tokens=(20,))])
        assert "inter_token_latency_per_chunk_ms" not in made["benchmarks"][0]["metrics"]

    def test_the_verdict_stands_beside(self, summary: Any) -> None:
        assert summary([steady(0)])["loadgen"]["verdict"] == "VALID"


NOT_TOLD = {  # of guidellm's own queues and processes
    "queued_time_avg",
    "resolve_start_delay_avg",
    "resolve_targeted_start_delay_avg",
    "request_start_delay_avg",
    "request_targeted_start_delay_avg",
    "request_time_avg",
    "resolve_end_delay_avg",
    "resolve_time_avg",
    "finalized_delay_avg",
    "processed_delay_avg",
    "worker_count",
    "rampup_duration",
}
ADDED = {"inter_token_latency_per_chunk_ms"}  # as benchmark-runner adds it


class TestBesideGuidellm:
    """A report of guidellm 0.6.0's and a summary have the same keys, but for what is named here."""

    def keys(self, node: Any, path: str = "") -> set[str]:
        if isinstance(node, list):
            return self.keys(node[0], path) if node else set()
        if not isinstance(node, dict):
            return {path}
        return set().union(*(self.keys(one, f"{path}.{key}") for key, one in node.items()))

    def test_the_keys_are_the_same(self, summary: Any) -> None:
        made = json.loads(json.dumps(summary([steady(i, due=50 * i) for i in range(3)])))
        theirs = {
            path
            for path in self.keys(GUIDELLM["benchmarks"])
            if path.split(".")[-1] not in NOT_TOLD
        }
        ours = {path for path in self.keys(made["benchmarks"]) if not ADDED & set(path.split("."))}
        assert ours == theirs

    def test_guidellms_own_report_is_one_that_gpustack_takes(self) -> None:
        assert refusals(GUIDELLM) == []

    def test_guidellms_rates_between_events_are_none_that_a_second_has_seen(self) -> None:
        """640 tokens in 2.1 s: why ours are taken over windows."""
        found = at(GUIDELLM, "benchmarks.0.metrics.output_tokens_per_second.successful")
        assert found["count"] == 640
        assert found["max"] > 7000


class TestPhases:
    def test_latencies_are_those_of_the_requests_that_count(self, summary: Any) -> None:
        """The first of four requests took ten times as long."""
        records = [steady(0, ttft=200), *(steady(i, due=1000 * i) for i in range(1, 4))]
        assert value(summary(records), "time_to_first_token_ms") == pytest.approx(65)
        counted = summary(records, Transients(warmup=Transient(1)))
        assert value(counted, "time_to_first_token_ms") == pytest.approx(20)
        assert at(counted, "benchmarks.0.metrics.request_totals.total") == 3
        assert at(counted, "benchmarks.0.scheduler_metrics.requests_made.total") == 4
        assert refusals(counted) == []

    def test_log_says_how_many_requests_a_summary_leaves_out(self, summary: Any) -> None:
        records = [steady(i, due=1000 * i) for i in range(10)]
        counted = summary(records, Transients(warmup=Transient(2), cooldown=Transient(1)))
        assert coverage(Path("7.json"), counted, "the report below counts all") == (
            "7.json counts 7 of 10 requests, without those of --warmup and --cooldown; the report "
            "below counts all"
        )
        assert coverage(Path("7.json"), summary(records), "the report below counts all") == ""

    def test_rates_are_those_of_the_time_that_counts(self, summary: Any) -> None:
        """A request per second of five tokens each; the last ends 60 ms after it was sent."""
        records = [steady(i, due=1000 * i, n=5) for i in range(10)]
        counted = summary(records, Transients(warmup=Transient(2), cooldown=Transient(3)))
        benchmark = counted["benchmarks"][0]
        assert benchmark["duration"] == pytest.approx(4.06)
        assert (benchmark["warmup_duration"], benchmark["cooldown_duration"]) == (
            pytest.approx(2),
            pytest.approx(3),
        )
        assert value(counted, "output_tokens_per_second") == pytest.approx(5 * 5 / 4.06)
        assert value(counted, "request_concurrency") == pytest.approx(5 * 0.06 / 4.06)

    def test_requests_in_flight_beside_those_that_count_are_part_of_the_rates(
        self, summary: Any
    ) -> None:
        long = steady(0, gap=100, n=41)  # 20 ms to 4,020 ms
        records = [long, steady(1, due=1000), steady(2, due=2000)]
        counted = summary(records, Transients(warmup=Transient(1)))
        # tokens of the long one from 1,000 to 2,040 ms: at 1,020, 1,120, ..., 1,920 and 2,020
        beside = 10
        assert (
            at(counted, "benchmarks.0.metrics.output_tokens_per_second.successful.total_sum")
            > 2 * 3 + beside
        )


def test_a_concurrent_strategy_has_streams(summary: Any) -> None:
    assert Strategy("concurrent", 4.0, 4).to_dict()["streams"] == 4
    assert "streams" not in Strategy("constant", 4.0, None).to_dict()
    assert "streams" not in Strategy("concurrent", None, 4).to_dict()
