"""Comparisons: values, differences and conclusions."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.analysis.compare.comparison import Comparison, compare
from loadgen.analysis.compare.confidence_interval import Basis, NoiseFile
from loadgen.analysis.compare.metrics import metric_by_name
from loadgen.analysis.compare.pair import Conclusion, Row
from loadgen.analysis.compare.side import Side
from loadgen.analysis.compare.texts import notes
from loadgen.core.histogram import Histogram
from loadgen.errors import BadInput
from loadgen.report import to_json
from loadgen.stats.variance import Noise
from tests.helpers.compared_runs import FEW, SETTINGS, recorded, result, saved, server, starts


def compared(*paths: str, **options: Any) -> Comparison:
    return compare(
        [Side.read(name, path) for name, path in zip("ABC", paths, strict=False)], **options
    )


def rows(comparison: Comparison, side: int = 0) -> tuple[Row, ...]:
    return comparison.candidates[side].rows


def row(comparison: Comparison, name: str, side: int = 0) -> Row:
    (found,) = (row for row in rows(comparison, side) if row.metric.name == name)
    return found


@pytest.fixture
def bases(tmp_path: Path) -> str:
    return starts(tmp_path / "base", 20.0, 20.2, 19.9)


def test_cached_run_is_noted(tmp_path: Path) -> None:
    tokens = result("x")["loadgen"]["tokens"]
    shared = {
        "block_size": 16,
        "block_size_from": "default",
        "tokens": tokens["input_tokens"],
        "shared_tokens": 0,
    }
    prompts = {
        "sha256": "0" * 64,
        "requests": 20,
        "distinct": 20,
        "name": "random",
        "prefix_cache": shared,
    }
    warm = {**tokens, "cached_tokens": tokens["input_tokens"], "cached_counted": 20}
    paths = [
        saved(tmp_path / "a.json", prompts=prompts),
        saved(tmp_path / "b.json", prompts=prompts, tokens=warm),
    ]
    (note,) = (note for note in compared(*paths).notes if "cached" in note)
    assert note.startswith(paths[1])


class TestSingleRuns:
    def test_results_alone_have_no_conclusion(self, tmp_path: Path) -> None:
        found = row(
            compared(saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=25.0)), "ttft_p50"
        )
        assert (found.baseline, found.candidate) == (
            pytest.approx(20, rel=1e-3),
            pytest.approx(25, rel=1e-3),
        )
        assert found.change == pytest.approx(0.25, rel=1e-2)
        assert (found.interval, found.why_no_interval, found.conclusion) == (
            None,
            "measure with --records",
            Conclusion.UNKNOWN,
        )

    def test_saved_records_are_named(self, tmp_path: Path) -> None:
        paths = [
            saved(
                tmp_path / f"{name}.json", ttft=ttft, settings=FEW.replace(records=f"{name}.jsonl")
            )
            for name, ttft in (("a", 20), ("b", 21))
        ]
        assert (
            row(compared(*paths), "ttft_p50").why_no_interval
            == "give the records instead of the result: a.jsonl, b.jsonl"
        )

    @pytest.mark.integration
    def test_records_may_differ_but_are_never_better(self, tmp_path: Path) -> None:
        comparison = compared(
            recorded(tmp_path / "a"), recorded(tmp_path / "b", factor=0.5, seed=1)
        )
        found = row(comparison, "ttft_mean")
        assert found.interval is not None
        assert found.interval.basis is Basis.WITHIN
        assert found.bounds is not None
        assert found.bounds[0] < -0.5 < found.bounds[1]
        assert found.conclusion is Conclusion.MAYBE
        assert {each.conclusion for each in rows(comparison)} <= {
            Conclusion.BETTER_HERE,
            Conclusion.MAYBE,
            Conclusion.NO_SIGNIFICANT_DIFFERENCE,
            Conclusion.UNKNOWN,
        }
        assert comparison.candidates[0].block_length is not None

    @pytest.mark.integration
    def test_tpot_and_icl_are_decided_by_batches(self, tmp_path: Path) -> None:
        comparison = compared(
            recorded(tmp_path / "a"), recorded(tmp_path / "b", factor=0.5, seed=1)
        )
        decided = {
            each.metric.name: each
            for each in rows(comparison)
            if each.interval is not None and each.interval.basis is Basis.BATCHES
        }
        assert set(decided) == {"tpot_mean", "tpot_p50", "icl_mean", "icl_p50"}
        assert {each.conclusion for each in decided.values()} == {Conclusion.BETTER_HERE}

    @pytest.mark.integration
    def test_equal_runs_have_no_significant_difference(self, tmp_path: Path) -> None:
        comparison = compared(recorded(tmp_path / "a"), recorded(tmp_path / "b", seed=1))
        assert row(comparison, "ttft_mean").conclusion is Conclusion.NO_SIGNIFICANT_DIFFERENCE

    @pytest.mark.integration
    def test_metric_without_variation_has_no_interval(self, tmp_path: Path, bases: str) -> None:
        within = compared(recorded(tmp_path / "a"), recorded(tmp_path / "b", seed=1))
        by_starts = compared(bases, starts(tmp_path / "new", 10.0, 10.1, 9.9))
        for comparison in (within, by_starts):
            found = row(comparison, "error_rate")
            assert (found.change, found.interval, found.conclusion) == (
                0.0,
                None,
                Conclusion.UNKNOWN,
            )
            assert found.why_no_interval == "no variation was observed"

    @pytest.mark.integration
    def test_percentiles_of_few_values_have_no_interval(self, tmp_path: Path) -> None:
        comparison = compared(recorded(tmp_path / "a"), recorded(tmp_path / "b", seed=1))
        assert row(comparison, "ttft_p99").why_no_interval == "too few values"
        assert row(comparison, "ttft_p90").interval is not None

    def test_burst_has_too_few_blocks(self, tmp_path: Path) -> None:
        burst = SETTINGS.replace(request_rate=float("inf"))
        comparison = compared(
            recorded(tmp_path / "a", settings=burst),
            recorded(tmp_path / "b", seed=1, settings=burst),
        )
        assert (
            "200 requests are fewer than 5 blocks of"
            in row(comparison, "ttft_mean").why_no_interval
        )


class TestStarts:
    def test_three_starts_of_each_may_be_better(self, tmp_path: Path, bases: str) -> None:
        comparison = compared(bases, starts(tmp_path / "new", 10.0, 10.1, 9.9))
        found = row(comparison, "ttft_mean")
        assert found.interval is not None
        assert found.interval.basis is Basis.STARTS
        assert found.conclusion is Conclusion.BETTER
        assert found.change == pytest.approx(-0.5, abs=0.01)

    def test_three_starts_of_each_may_be_worse(self, tmp_path: Path, bases: str) -> None:
        assert (
            row(compared(bases, starts(tmp_path / "new", 40.0, 40.1, 39.9)), "ttft_mean").conclusion
            is Conclusion.WORSE
        )

    def test_lower_throughput_is_worse(self, tmp_path: Path, bases: str) -> None:
        """Slower answers take the run longer: fewer tokens a second."""
        comparison = compared(bases, starts(tmp_path / "new", 400.0, 401.0, 399.0))
        assert row(comparison, "request_throughput").conclusion is Conclusion.WORSE
        assert (
            row(comparison, "request_throughput").candidate
            < row(comparison, "request_throughput").baseline
        )

    def test_value_of_a_side_is_a_geometric_mean(self, tmp_path: Path) -> None:
        comparison = compared(starts(tmp_path / "a", 10.0, 40.0), starts(tmp_path / "b", 30.0))
        assert row(comparison, "ttft_mean").baseline == pytest.approx(20.0, rel=1e-3)
        assert row(comparison, "ttft_mean").change == pytest.approx(0.5, rel=1e-2)

    def test_scattered_starts_do_not_differ(self, tmp_path: Path) -> None:
        comparison = compared(
            starts(tmp_path / "a", 10, 20, 30), starts(tmp_path / "b", 11, 22, 33)
        )
        assert row(comparison, "ttft_mean").conclusion is Conclusion.NO_SIGNIFICANT_DIFFERENCE

    def test_two_starts_are_too_few(self, tmp_path: Path, bases: str) -> None:
        assert (
            row(compared(bases, starts(tmp_path / "new", 10.0, 10.1)), "ttft_mean").interval is None
        )

    def test_uncorrected_significance_is_maybe(self, tmp_path: Path) -> None:
        """Holm's procedure allows for all rows; an interval is of its row alone."""
        comparison = compared(
            starts(tmp_path / "a", 20.0, 20.2, 19.8), starts(tmp_path / "b", 20.7, 20.9, 20.4)
        )
        found = row(comparison, "ttft_mean")
        assert found.interval is not None
        assert 0.05 / len(rows(comparison)) < found.interval.p_value < 0.05
        assert found.conclusion is Conclusion.MAYBE

    def test_throughput_is_rounded_to_a_request(self, tmp_path: Path) -> None:
        """At a rate below what the server can do it is what was asked, whatever the server: 20
        of 20 in either case.
        """
        comparison = compared(
            starts(tmp_path / "a", 20.0, 20.01, 20.02), starts(tmp_path / "b", 21.0, 21.01, 21.02)
        )
        found = row(comparison, "request_throughput")
        assert found.change != 0
        assert found.resolution == 1 / 20
        assert found.conclusion is Conclusion.NO_SIGNIFICANT_DIFFERENCE

    @pytest.mark.parametrize(
        ("candidate_ms", "conclusion"),
        [(20.05, Conclusion.NO_SIGNIFICANT_DIFFERENCE), (20.5, Conclusion.WORSE)],
    )
    def test_latency_is_known_to_its_client_error(
        self, tmp_path: Path, candidate_ms: float, conclusion: Conclusion
    ) -> None:
        """Each value lies within 52 us, which are 0.26 % of 20 ms, on both sides; a percentile
        also in its bucket.
        """
        candidates = (candidate_ms, candidate_ms + 0.0001, candidate_ms + 0.0002)
        comparison = compared(
            starts(tmp_path / "a", 20.0, 20.0001, 20.0002), starts(tmp_path / "b", *candidates)
        )
        median, mean = row(comparison, "ttft_p50"), row(comparison, "ttft_mean")
        assert mean.resolution == pytest.approx(2 * 0.0026, rel=0.03)
        assert median.resolution == pytest.approx(2 * (0.0026 + 0.0005), rel=0.03)
        assert (median.conclusion, mean.conclusion) == (conclusion, conclusion)

    def test_latencies_with_failures_are_never_better(self, tmp_path: Path, bases: str) -> None:
        """Whoever answers only the requests that it finds easy has good latencies."""
        comparison = compared(bases, starts(tmp_path / "new", 10.0, 10.1, 9.9, error_rate=0.5))
        assert row(comparison, "ttft_mean").conclusion is Conclusion.MAYBE
        assert comparison.candidates[0].error_rates_differ == (
            "0.0% of the requests of A failed, 50.0% of those of B"
        )
        lost = [note for note in comparison.notes if "the server failed" in note]
        assert len(lost) == 3
        assert (
            "new-0.json: the server failed 50.0% of its requests; its latencies are those of the "
            "rest" in lost[0]
        )

    def test_error_rate_of_1_percent_is_tolerated(self, tmp_path: Path, bases: str) -> None:
        comparison = compared(bases, starts(tmp_path / "new", 10.0, 10.1, 9.9, error_rate=0.01))
        assert row(comparison, "ttft_mean").conclusion is Conclusion.BETTER
        assert comparison.notes == ()

    def test_invalid_run_prevents_better(self, tmp_path: Path, bases: str) -> None:
        new = starts(tmp_path / "new", 10.0, 10.1, 9.9)
        saved(tmp_path / "new" / "bad.json", ttft=10.2, verdict="INVALID")
        comparison = compared(bases, new)
        assert row(comparison, "ttft_mean").conclusion is Conclusion.MAYBE
        assert any("bad.json: INVALID" in note for note in comparison.notes)

    def test_server_metrics_are_compared_by_starts(self, tmp_path: Path) -> None:
        def of(name: str, *preemptions: float) -> str:
            (tmp_path / name).mkdir()
            for number, each in enumerate(preemptions):
                saved(
                    tmp_path / name / f"{name}{number}.json", ttft=20 + number, server=server(each)
                )
            return str(tmp_path / name)

        comparison = compared(of("a", 10, 11, 12), of("b", 20, 21, 22))
        found = row(comparison, "server_preemptions")
        assert found.change == pytest.approx(0.91, abs=0.02)
        assert found.conclusion is Conclusion.MAYBE  # whether that is better is not for us to say
        assert row(comparison, "server_prefix_hit_rate").change == 0.0
        none = row(compared(of("c", 0), of("d", 5)), "server_preemptions")
        few = row(compared(of("e", 3), of("f", 5)), "server_preemptions")
        assert few.why_no_interval == "server metrics need 3 starts of each side"
        assert (none.baseline, none.candidate, none.change, none.why_no_interval) == (
            0,
            pytest.approx(5),
            None,
            "a value is 0",
        )


class TestNoise:
    @pytest.fixture
    def noise(self, bases: str) -> NoiseFile:
        return NoiseFile.of(Side.read("A", bases))

    def test_single_starts_may_be_better(self, tmp_path: Path, noise: NoiseFile) -> None:
        comparison = compared(
            saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=10.0), noise=noise
        )
        found = row(comparison, "ttft_mean")
        assert found.interval is not None
        assert found.interval.basis is Basis.NOISE
        assert found.conclusion is Conclusion.BETTER

    def test_difference_within_noise_is_not_significant(
        self, tmp_path: Path, noise: NoiseFile
    ) -> None:
        comparison = compared(
            saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=20.3), noise=noise
        )
        assert row(comparison, "ttft_mean").conclusion is Conclusion.NO_SIGNIFICANT_DIFFERENCE

    def test_metric_without_noise_uses_the_run(self, tmp_path: Path) -> None:
        paths = (recorded(tmp_path / "a"), recorded(tmp_path / "b", factor=0.1, seed=1))
        workload = Side.read("A", paths[0]).starts[0].workload
        comparison = compared(*paths, noise=NoiseFile({"e2el_mean": Noise(0.1, 4)}, workload))
        assert row(comparison, "e2el_mean").conclusion is Conclusion.BETTER
        within = row(comparison, "ttft_mean")
        assert within.interval is not None
        assert within.interval.basis is Basis.WITHIN
        assert within.conclusion is Conclusion.MAYBE

    def test_noise_file_round_trip(self, tmp_path: Path, noise: NoiseFile) -> None:
        noise.save(str(tmp_path / "noise.json"))
        assert NoiseFile.read(str(tmp_path / "noise.json")) == noise
        assert noise.noise["ttft_mean"].sd == pytest.approx(0.0076, abs=0.0003)
        assert noise.noise["ttft_mean"].df == 2

    def test_constant_metric_is_not_saved(self, noise: NoiseFile) -> None:
        """Three runs without an error do not show that there never is one."""
        assert "error_rate" not in noise.noise

    def test_noise_of_another_workload_is_refused(self, tmp_path: Path, noise: NoiseFile) -> None:
        other = FEW.replace(request_rate=40.0)
        paths = [
            saved(tmp_path / f"{ttft}.json", ttft=ttft, settings=other) for ttft in (20.0, 10.0)
        ]
        with pytest.raises(
            BadInput, match="the noise file have different workloads: --request-rate 40 and 20"
        ):
            compared(*paths, noise=noise)
        assert "--request-rate 40 and 20" in compared(*paths, noise=noise, anyway=True).clashes[0]

    def test_noise_of_two_starts_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="has 2 starts; give 3 or more"):
            NoiseFile.of(Side.read("A", starts(tmp_path / "a", 20, 21)))

    def test_noise_of_partial_runs_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match=r"PARTIAL: interrupted; leave that run out"):
            NoiseFile.of(Side.read("A", starts(tmp_path / "a", 20, 21, 22, partial="interrupted")))

    def test_noise_of_different_engines_is_refused(self, tmp_path: Path) -> None:
        folder = starts(tmp_path / "a", 20, 21, 22)
        saved(tmp_path / "a" / "other.json", ttft=23, engine={"name": "tests", "version": "2"})
        with pytest.raises(BadInput, match=r"not of one configuration: engine\.version 1 and 2"):
            NoiseFile.of(Side.read("A", folder))
        assert NoiseFile.of(Side.read("A", folder), anyway=True).noise["ttft_mean"].df == 3

    @pytest.mark.parametrize(
        "content",
        [
            "{}",
            "[]",
            "x",
            '{"loadgen_noise": 1, "each": {}, "workload": {}}',
            '{"loadgen_noise": 1, "each": {"ttft_mean": {"sd": 0.1, "df": 0}}, "workload": %s}',
            '{"loadgen_noise": 1, "each": {"ttft_mean": {"sd": -1, "df": 2}}, "workload": %s}',
        ],
    )
    def test_other_file_is_not_a_noise_file(self, tmp_path: Path, content: str) -> None:
        whole = json.dumps({"prompts": "", "due times": "", "requests": 1})
        (tmp_path / "n.json").write_text(content.replace("%s", whole))
        with pytest.raises(BadInput, match="is not a noise file; name a file of --save-noise"):
            NoiseFile.read(str(tmp_path / "n.json"))


class TestWorkloadsAndRows:
    def test_different_workloads_need_anyway(self, tmp_path: Path) -> None:
        paths = [
            saved(tmp_path / f"{rate}.json", settings=FEW.replace(request_rate=rate))
            for rate in (20.0, 30.0)
        ]
        with pytest.raises(BadInput, match="have different workloads: --request-rate 20 and 30"):
            compared(*paths)
        assert "--request-rate 20 and 30" in compared(*paths, anyway=True).clashes[0]

    def test_different_workloads_on_one_side(self, tmp_path: Path) -> None:
        folder = starts(tmp_path / "a", 20)
        saved(tmp_path / "a" / "more.json", settings=FEW.replace(num_prompts=30))
        with pytest.raises(
            BadInput, match=r"the runs of .*a have different workloads: requests 20 and 30"
        ):
            compared(folder, saved(tmp_path / "b.json"))

    def test_simulated_and_partial_runs_are_noted(self, tmp_path: Path) -> None:
        comparison = compared(
            saved(tmp_path / "a.json", simulated=True),
            saved(tmp_path / "b.json", ttft=21, partial="interrupted"),
        )
        assert comparison.simulated_sides == ["A"]
        assert notes(comparison)[0].startswith("SIMULATED ENGINE (A)")
        assert any("PARTIAL: interrupted" in note for note in comparison.notes)

    def test_repeated_metrics_are_left_out(self, tmp_path: Path) -> None:
        paths = (saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=21))
        names = {each.metric.name for each in rows(compared(*paths))}
        assert {"ttft_p50", "icl_p50"} <= names
        assert not {"ttfo_p50", "itl_p50"} & names
        wanted = metric_by_name("itl_p50")
        assert wanted is not None
        assert "itl_p50" in {
            each.metric.name for each in rows(compared(*paths, extra_metrics=[wanted]))
        }

    def test_latency_is_left_out_as_a_whole(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            data = result(name)
            histograms = data["loadgen"]["histograms"]
            gaps = Histogram.from_dict(histograms["itl"])
            gaps.record(10**9)  # moves the mean, and no median
            histograms["itl"] = gaps.to_dict()
            (tmp_path / f"{name}.json").write_text(to_json(data))
        found = compared(str(tmp_path / "a.json"), str(tmp_path / "b.json"))
        assert row(found, "itl_p50").baseline == row(found, "icl_p50").baseline
        assert row(found, "itl_mean").baseline != row(found, "icl_mean").baseline

    def test_latency_that_is_a_multiple_keeps_its_row(self, tmp_path: Path) -> None:
        """Answers that come 2.5 times as late as the first token, in both runs."""
        for name, ttft in (("a", 20.0), ("b", 30.0)):
            data = result(name, ttft=ttft)
            histograms = data["loadgen"]["histograms"]
            histograms["ttfo_due"] = histograms["e2el_due"]
            (tmp_path / f"{name}.json").write_text(to_json(data))
        found = compared(str(tmp_path / "a.json"), str(tmp_path / "b.json"))
        assert row(found, "ttfo_mean").baseline == pytest.approx(50.0)

    def test_throughputs_of_equal_requests_have_one_row(self, tmp_path: Path) -> None:
        paths = (saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=400))
        found = compared(*paths)
        assert {row.metric.name for row in rows(found) if "throughput" in row.metric.name} == {
            "request_throughput"
        }
        repeated = found.candidates[0].repeated
        assert {repeated["output_throughput"], repeated["total_throughput"]} == {
            "request_throughput"
        }
        wanted = metric_by_name("output_throughput")
        assert wanted is not None
        asked = row(compared(*paths, extra_metrics=[wanted]), "output_throughput")
        assert asked.change == pytest.approx(row(found, "request_throughput").change)

    def test_throughputs_of_unequal_requests_have_rows(self, tmp_path: Path) -> None:
        data = result("b", ttft=21)
        data["output_throughput"] *= 1.01
        (tmp_path / "b.json").write_text(to_json(data))
        names = {
            each.metric.name
            for each in rows(compared(saved(tmp_path / "a.json"), str(tmp_path / "b.json")))
        }
        assert {"request_throughput", "output_throughput"} <= names
        assert "total_throughput" not in names

    def test_rows_are_in_the_order_of_tables(self, tmp_path: Path) -> None:
        extra = [metric_by_name(name) for name in ("tpot_max", "ttft_p99.9", "ttft_max")]
        comparison = compared(
            saved(tmp_path / "a.json"),
            saved(tmp_path / "b.json", ttft=21),
            extra_metrics=[metric for metric in extra if metric],
        )
        names = [each.metric.name for each in rows(comparison)]
        ttft = [name for name in names if name.startswith("ttft")]
        assert ttft == [f"ttft_{name}" for name in ("mean", "p50", "p90", "p99", "p99.9", "max")]
        assert names.index("tpot_p99") + 1 == names.index("tpot_max")

    def test_missing_metric_has_no_row(self, tmp_path: Path) -> None:
        data = result("20250101")
        found = compared(saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=21))
        assert data["loadgen"]["rates"]["goodput_requests_per_s"] is None
        assert "goodput" not in {each.metric.name for each in rows(found)}

    def test_every_candidate_is_compared_with_the_first(self, tmp_path: Path) -> None:
        comparison = compared(
            *(saved(tmp_path / f"{ttft}.json", ttft=ttft) for ttft in (20, 30, 40))
        )
        changes = [row(comparison, "ttft_mean", side).change for side in (0, 1)]
        assert changes == pytest.approx([0.5, 1.0], rel=1e-2)

    def test_error_rate_changes_in_percentage_points(self, tmp_path: Path) -> None:
        found = row(
            compared(
                saved(tmp_path / "a.json", error_rate=0.0),
                saved(tmp_path / "b.json", ttft=21, error_rate=0.02),
            ),
            "error_rate",
        )
        assert found.change == pytest.approx(0.02)
