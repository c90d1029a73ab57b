"""Comparisons: values, differences, and the words that may be said of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.analysis.compare.comparison import Comparison, compare
from loadgen.analysis.compare.interval import Basis
from loadgen.analysis.compare.metrics import BUCKET, named
from loadgen.analysis.compare.noise_file import NoiseFile
from loadgen.analysis.compare.row import Row, Word
from loadgen.analysis.compare.side import Side
from loadgen.core.histogram import Histogram
from loadgen.errors import BadInput
from loadgen.report import to_json
from loadgen.stats.variance import Noise
from tests.helpers.compared_runs import FEW, SETTINGS, recorded, result, saved, starts


def beside(*paths: str, **options: Any) -> Comparison:
    return compare([Side.read(name, path) for name, path in zip("ABC", paths, strict=False)], **options)


def rows(comparison: Comparison, side: int = 0) -> tuple[Row, ...]:
    return comparison.each[side].rows


def row(comparison: Comparison, name: str, side: int = 0) -> Row:
    (found,) = (row for row in rows(comparison, side) if row.metric.name == name)
    return found


@pytest.fixture
def bases(tmp_path: Path) -> str:
    return starts(tmp_path / "base", 20.0, 20.2, 19.9)


def test_a_run_on_a_server_that_knew_its_prompts_is_named(tmp_path: Path) -> None:
    prompts = {"sha256": "0" * 64, "requests": 20, "distinct": 20, "name": "random", "prefix_tokens": 0}
    tokens = result("x")["loadgen"]["tokens"]
    warm = {**tokens, "cached_tokens": tokens["input_tokens"], "cached_counted": 20}
    paths = [saved(tmp_path / "a.json", prompts=prompts), saved(tmp_path / "b.json", prompts=prompts, tokens=warm)]
    (note,) = (note for note in beside(*paths).notes if "cached" in note)
    assert note.startswith(paths[1])


class TestSingleRuns:
    def test_of_results_alone_there_is_the_point_and_no_word(self, tmp_path: Path) -> None:
        found = row(beside(saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=25.0)), "ttft_p50")
        assert (found.one, found.other) == (pytest.approx(20, rel=1e-3), pytest.approx(25, rel=1e-3))
        assert found.change == pytest.approx(0.25, rel=1e-2)
        assert (found.interval, found.why, found.word) == (None, "keep --records", Word.UNKNOWN)

    def test_records_that_were_kept_are_asked_for_by_name(self, tmp_path: Path) -> None:
        paths = [
            saved(tmp_path / f"{name}.json", ttft=ttft, settings=FEW.replace(records=f"{name}.jsonl"))
            for name, ttft in (("a", 20), ("b", 21))
        ]
        assert row(beside(*paths), "ttft_p50").why == "name the records instead of the result: a.jsonl, b.jsonl"

    def test_of_records_it_differs_within_the_run_and_is_never_better(self, tmp_path: Path) -> None:
        comparison = beside(recorded(tmp_path / "a"), recorded(tmp_path / "b", factor=0.5, seed=1))
        found = row(comparison, "ttft_mean")
        assert found.interval is not None
        assert found.interval.basis is Basis.WITHIN
        assert found.bounds is not None
        assert found.bounds[0] < -0.5 < found.bounds[1]
        assert found.word is Word.DIFFERS
        assert {each.word for each in rows(comparison)} <= {Word.DIFFERS, Word.NOT_TOLD_APART, Word.UNKNOWN}
        assert comparison.each[0].block is not None

    def test_runs_that_are_alike_are_not_told_apart(self, tmp_path: Path) -> None:
        comparison = beside(recorded(tmp_path / "a"), recorded(tmp_path / "b", seed=1))
        assert row(comparison, "ttft_mean").word is Word.NOT_TOLD_APART

    def test_no_error_in_a_run_does_not_show_that_there_never_is_one(self, tmp_path: Path, bases: str) -> None:
        within = beside(recorded(tmp_path / "a"), recorded(tmp_path / "b", seed=1))
        by_starts = beside(bases, starts(tmp_path / "new", 10.0, 10.1, 9.9))
        for comparison in (within, by_starts):
            found = row(comparison, "error_rate")
            assert (found.change, found.interval, found.word) == (0.0, None, Word.UNKNOWN)
            assert found.why == "nothing of it was seen to vary"

    def test_percentiles_of_few_values_have_no_interval(self, tmp_path: Path) -> None:
        comparison = beside(recorded(tmp_path / "a"), recorded(tmp_path / "b", seed=1))
        assert row(comparison, "ttft_p99").why == "of too few values"
        assert row(comparison, "ttft_p90").interval is not None

    def test_a_burst_is_one_event_however_many_requests_it_has(self, tmp_path: Path) -> None:
        burst = SETTINGS.replace(request_rate=float("inf"))
        comparison = beside(recorded(tmp_path / "a", settings=burst), recorded(tmp_path / "b", seed=1, settings=burst))
        assert "200 requests are fewer than 5 blocks of" in row(comparison, "ttft_mean").why


class TestStarts:
    def test_three_of_each_say_which_is_better(self, tmp_path: Path, bases: str) -> None:
        comparison = beside(bases, starts(tmp_path / "new", 10.0, 10.1, 9.9))
        found = row(comparison, "ttft_mean")
        assert found.interval is not None
        assert found.interval.basis is Basis.STARTS
        assert found.word is Word.BETTER
        assert found.change == pytest.approx(-0.5, abs=0.01)

    def test_they_say_which_is_worse(self, tmp_path: Path, bases: str) -> None:
        assert row(beside(bases, starts(tmp_path / "new", 40.0, 40.1, 39.9)), "ttft_mean").word is Word.WORSE

    def test_more_is_better_of_a_throughput(self, tmp_path: Path, bases: str) -> None:
        """Slower answers take the run longer: fewer tokens a second."""
        comparison = beside(bases, starts(tmp_path / "new", 400.0, 401.0, 399.0))
        assert row(comparison, "request_throughput").word is Word.WORSE
        assert row(comparison, "request_throughput").other < row(comparison, "request_throughput").one

    def test_the_value_of_a_side_is_the_geometric_mean_of_its_starts(self, tmp_path: Path) -> None:
        comparison = beside(starts(tmp_path / "a", 10.0, 40.0), starts(tmp_path / "b", 30.0))
        assert row(comparison, "ttft_mean").one == pytest.approx(20.0, rel=1e-3)
        assert row(comparison, "ttft_mean").change == pytest.approx(0.5, rel=1e-2)

    def test_starts_that_scatter_are_not_told_apart(self, tmp_path: Path) -> None:
        comparison = beside(starts(tmp_path / "a", 10, 20, 30), starts(tmp_path / "b", 11, 22, 33))
        assert row(comparison, "ttft_mean").word is Word.NOT_TOLD_APART

    def test_two_of_one_side_are_too_few(self, tmp_path: Path, bases: str) -> None:
        assert row(beside(bases, starts(tmp_path / "new", 10.0, 10.1)), "ttft_mean").interval is None

    def test_what_only_its_own_interval_shows_differs(self, tmp_path: Path) -> None:
        """Holm's procedure allows for all rows; an interval is of its row alone."""
        comparison = beside(starts(tmp_path / "a", 20.0, 20.2, 19.8), starts(tmp_path / "b", 20.7, 20.9, 20.4))
        found = row(comparison, "ttft_mean")
        assert found.interval is not None
        assert 0.05 / len(rows(comparison)) < found.interval.by_chance < 0.05
        assert found.word is Word.DIFFERS

    def test_a_throughput_is_told_to_a_request(self, tmp_path: Path) -> None:
        """At a rate below what the server can do it is what was asked, whatever the server: 20 of 20 in either case."""
        comparison = beside(starts(tmp_path / "a", 20.0, 20.01, 20.02), starts(tmp_path / "b", 21.0, 21.01, 21.02))
        found = row(comparison, "request_throughput")
        assert found.change != 0
        assert found.resolution == 1 / 20
        assert found.word is Word.NOT_TOLD_APART

    def test_a_percentile_is_told_to_a_bucket_and_a_mean_exactly(self, tmp_path: Path) -> None:
        """20.000 and 20.016 ms lie in neighbouring buckets, as 20.015 and 20.016 would."""
        comparison = beside(
            starts(tmp_path / "a", 20.0, 20.0001, 20.0002), starts(tmp_path / "b", 20.016, 20.0161, 20.0162)
        )
        median, mean = row(comparison, "ttft_p50"), row(comparison, "ttft_mean")
        assert (median.resolution, mean.resolution) == (BUCKET, 0)
        assert 0 < (median.change or 0) < BUCKET
        assert median.word is Word.NOT_TOLD_APART
        assert mean.word is Word.WORSE

    def test_latencies_of_a_choice_of_the_requests_are_never_better(self, tmp_path: Path, bases: str) -> None:
        """Whoever answers only the requests that it finds easy has good latencies."""
        comparison = beside(bases, starts(tmp_path / "new", 10.0, 10.1, 9.9, error_rate=0.5))
        assert row(comparison, "ttft_mean").word is Word.DIFFERS
        assert comparison.each[0].survivors == ("0.0% of the requests of A did not succeed, 50.0% of those of B")
        lost = [note for note in comparison.notes if "the server failed" in note]
        assert len(lost) == 3
        assert "new-0.json: the server failed 50.0% of its requests; its latencies are those of the rest" in lost[0]

    def test_one_that_failed_of_a_hundred_is_no_choice(self, tmp_path: Path, bases: str) -> None:
        comparison = beside(bases, starts(tmp_path / "new", 10.0, 10.1, 9.9, error_rate=0.01))
        assert row(comparison, "ttft_mean").word is Word.BETTER
        assert comparison.notes == ()

    def test_where_a_run_is_invalid_nothing_is_better(self, tmp_path: Path, bases: str) -> None:
        new = starts(tmp_path / "new", 10.0, 10.1, 9.9)
        saved(tmp_path / "new" / "bad.json", ttft=10.2, verdict="INVALID")
        comparison = beside(bases, new)
        assert row(comparison, "ttft_mean").word is Word.DIFFERS
        assert any("bad.json: INVALID" in note for note in comparison.notes)

    def test_what_the_server_said_is_compared_by_starts_alone(self, tmp_path: Path) -> None:
        def of(name: str, *preemptions: float) -> str:
            said = [{"counts": COUNTS | {"preemptions": each}} for each in preemptions]
            (tmp_path / name).mkdir()
            for number, each in enumerate(said):
                full = SERVER | {"prefix_hit_rate": 0.5}
                saved(tmp_path / name / f"{name}{number}.json", ttft=20 + number, server=full | each)
            return str(tmp_path / name)

        comparison = beside(of("a", 10, 11, 12), of("b", 20, 21, 22))
        found = row(comparison, "server_preemptions")
        assert found.change == pytest.approx(0.91, abs=0.02)
        assert found.word is Word.DIFFERS  # whether that is better is not for us to say
        assert row(comparison, "server_prefix_hit_rate").change == 0.0
        none = row(beside(of("c", 0), of("d", 5)), "server_preemptions")
        few = row(beside(of("e", 3), of("f", 5)), "server_preemptions")
        assert few.why == "the server's own words need 3 starts of each"
        assert (none.one, none.other, none.change, none.why) == (0, pytest.approx(5), None, "a value is 0")


COUNTS: dict[str, float | None] = dict.fromkeys(("requests", "prompt_tokens", "generation_tokens", "preemptions"))
SERVER: dict[str, Any] = {
    "sources": [],
    "gpus": [],
    "missing": [],
    "gpu_levels": [],
    "covers_run": True,
    "restarts": 0,
    "levels": {level: {"mean": None, "max": None} for level in ("running", "waiting", "kv_usage")},
    **dict.fromkeys(("prefix_hit_rate", "spec_acceptance", "ttft_ms")),
    "output_tokens": {"server": None, "ours": 0},
}


class TestNoise:
    @pytest.fixture
    def noise(self, bases: str) -> NoiseFile:
        return NoiseFile.of(Side.read("A", bases))

    def test_with_it_single_starts_may_be_better(self, tmp_path: Path, noise: NoiseFile) -> None:
        comparison = beside(saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=10.0), noise=noise)
        found = row(comparison, "ttft_mean")
        assert found.interval is not None
        assert found.interval.basis is Basis.NOISE
        assert found.word is Word.BETTER

    def test_what_it_explains_is_not_told_apart(self, tmp_path: Path, noise: NoiseFile) -> None:
        comparison = beside(saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=20.3), noise=noise)
        assert row(comparison, "ttft_mean").word is Word.NOT_TOLD_APART

    def test_what_it_says_nothing_of_is_told_within_the_run_and_is_not_better(self, tmp_path: Path) -> None:
        paths = (recorded(tmp_path / "a"), recorded(tmp_path / "b", factor=0.1, seed=1))
        workload = Side.read("A", paths[0]).starts[0].workload
        comparison = beside(*paths, noise=NoiseFile({"e2el_mean": Noise(0.1, 4)}, workload))
        assert row(comparison, "e2el_mean").word is Word.BETTER
        within = row(comparison, "ttft_mean")
        assert within.interval is not None
        assert within.interval.basis is Basis.WITHIN
        assert within.word is Word.DIFFERS

    def test_it_is_kept_whole(self, tmp_path: Path, noise: NoiseFile) -> None:
        noise.save(str(tmp_path / "noise.json"))
        assert NoiseFile.read(str(tmp_path / "noise.json")) == noise
        assert noise.each["ttft_mean"].sd == pytest.approx(0.0076, abs=0.0003)
        assert noise.each["ttft_mean"].df == 2

    def test_of_what_never_differed_nothing_is_kept(self, noise: NoiseFile) -> None:
        """Three runs without an error do not show that there never is one."""
        assert "error_rate" not in noise.each

    def test_it_is_of_one_workload(self, tmp_path: Path, noise: NoiseFile) -> None:
        other = FEW.replace(request_rate=40.0)
        paths = [saved(tmp_path / f"{ttft}.json", ttft=ttft, settings=other) for ttft in (20.0, 10.0)]
        with pytest.raises(BadInput, match="the runs of the noise asked different things: --request-rate 40 and 20"):
            beside(*paths, noise=noise)
        assert "--request-rate 40 and 20" in beside(*paths, noise=noise, anyway=True).notes[0]

    def test_of_two_starts_none_is_kept(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="has 2 starts; give 3 or more"):
            NoiseFile.of(Side.read("A", starts(tmp_path / "a", 20, 21)))

    def test_of_starts_that_are_not_to_be_believed_none_is_kept(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match=r"PARTIAL: interrupted; leave that run out"):
            NoiseFile.of(Side.read("A", starts(tmp_path / "a", 20, 21, 22, partial="interrupted")))

    def test_of_different_things_none_is_kept(self, tmp_path: Path) -> None:
        folder = starts(tmp_path / "a", 20, 21, 22)
        saved(tmp_path / "a" / "other.json", ttft=23, engine={"name": "tests", "version": "2"})
        with pytest.raises(BadInput, match=r"not of one thing: engine\.version 1 and 2"):
            NoiseFile.of(Side.read("A", folder))
        assert NoiseFile.of(Side.read("A", folder), anyway=True).each["ttft_mean"].df == 3

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
    def test_another_file_is_refused(self, tmp_path: Path, content: str) -> None:
        whole = json.dumps({"prompts": "", "due times": "", "requests": 1})
        (tmp_path / "n.json").write_text(content.replace("%s", whole))
        with pytest.raises(BadInput, match="holds no noise; name a file of --save-noise"):
            NoiseFile.read(str(tmp_path / "n.json"))


class TestWhatIsCompared:
    def test_different_workloads_are_refused_and_told_if_that_is_insisted_on(self, tmp_path: Path) -> None:
        paths = [saved(tmp_path / f"{rate}.json", settings=FEW.replace(request_rate=rate)) for rate in (20.0, 30.0)]
        with pytest.raises(BadInput, match="asked different things: --request-rate 20 and 30"):
            beside(*paths)
        assert "--request-rate 20 and 30" in beside(*paths, anyway=True).notes[0]

    def test_so_are_different_workloads_on_one_side(self, tmp_path: Path) -> None:
        folder = starts(tmp_path / "a", 20)
        saved(tmp_path / "a" / "more.json", settings=FEW.replace(num_prompts=30))
        with pytest.raises(BadInput, match=r"the runs of .*a asked different things: requests 20 and 30"):
            beside(folder, saved(tmp_path / "b.json"))

    def test_simulated_and_partial_runs_are_said_aloud(self, tmp_path: Path) -> None:
        comparison = beside(
            saved(tmp_path / "a.json", simulated=True), saved(tmp_path / "b.json", ttft=21, partial="interrupted")
        )
        assert any(note.startswith("SIMULATED ENGINE (A)") for note in comparison.notes)
        assert any("PARTIAL: interrupted" in note for note in comparison.notes)

    def test_rows_that_only_repeat_others_are_left_out(self, tmp_path: Path) -> None:
        paths = (saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=21))
        names = {each.metric.name for each in rows(beside(*paths))}
        assert {"ttft_p50", "icl_p50"} <= names
        assert not {"ttfo_p50", "itl_p50"} & names
        wanted = named("itl_p50")
        assert wanted is not None
        assert "itl_p50" in {each.metric.name for each in rows(beside(*paths, more=[wanted]))}

    def test_a_latency_is_left_out_whole_or_not_at_all(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            data = result(name)
            histograms = data["loadgen"]["histograms"]
            gaps = Histogram.from_dict(histograms["itl"])
            gaps.record(10**9)  # moves the mean, and no median
            histograms["itl"] = gaps.to_dict()
            (tmp_path / f"{name}.json").write_text(to_json(data))
        found = beside(str(tmp_path / "a.json"), str(tmp_path / "b.json"))
        assert row(found, "itl_p50").one == row(found, "icl_p50").one
        assert row(found, "itl_mean").one != row(found, "icl_mean").one

    def test_a_latency_that_is_a_multiple_of_another_is_another_one(self, tmp_path: Path) -> None:
        """Answers that come 2.5 times as late as the first token, in both runs."""
        for name, ttft in (("a", 20.0), ("b", 30.0)):
            data = result(name, ttft=ttft)
            histograms = data["loadgen"]["histograms"]
            histograms["ttfo_due"] = histograms["e2el_due"]
            (tmp_path / f"{name}.json").write_text(to_json(data))
        found = beside(str(tmp_path / "a.json"), str(tmp_path / "b.json"))
        assert row(found, "ttfo_mean").one == pytest.approx(50.0)

    def test_a_throughput_of_requests_that_are_all_as_long_is_told_once(self, tmp_path: Path) -> None:
        paths = (saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=400))
        found = beside(*paths)
        assert {row.metric.name for row in rows(found) if "throughput" in row.metric.name} == {"request_throughput"}
        repeated = found.each[0].repeated
        assert {repeated["output_throughput"], repeated["total_throughput"]} == {"request_throughput"}
        wanted = named("output_throughput")
        assert wanted is not None
        asked = row(beside(*paths, more=[wanted]), "output_throughput")
        assert asked.change == pytest.approx(row(found, "request_throughput").change)

    def test_where_requests_are_not_as_long_each_throughput_has_its_row(self, tmp_path: Path) -> None:
        data = result("b", ttft=21)
        data["output_throughput"] *= 1.01
        (tmp_path / "b.json").write_text(to_json(data))
        names = {each.metric.name for each in rows(beside(saved(tmp_path / "a.json"), str(tmp_path / "b.json")))}
        assert {"request_throughput", "output_throughput"} <= names
        assert "total_throughput" not in names

    def test_what_one_run_does_not_have_is_no_row(self, tmp_path: Path) -> None:
        data = result("20250101")
        found = beside(saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=21))
        assert data["loadgen"]["rates"]["goodput_requests_per_s"] is None
        assert "goodput" not in {each.metric.name for each in rows(found)}

    def test_each_further_side_is_held_against_the_first(self, tmp_path: Path) -> None:
        comparison = beside(*(saved(tmp_path / f"{ttft}.json", ttft=ttft) for ttft in (20, 30, 40)))
        changes = [row(comparison, "ttft_mean", side).change for side in (0, 1)]
        assert changes == pytest.approx([0.5, 1.0], rel=1e-2)

    def test_errors_are_told_in_percentage_points(self, tmp_path: Path) -> None:
        found = row(
            beside(saved(tmp_path / "a.json", error_rate=0.0), saved(tmp_path / "b.json", ttft=21, error_rate=0.02)),
            "error_rate",
        )
        assert found.change == pytest.approx(0.02)
