"""Conditions: what is read, what is refused, and when a change is beyond a bound."""

from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.analysis.compare.comparison import compare
from loadgen.analysis.compare.judged_comparison import Judgement, judge, parse
from loadgen.analysis.compare.metrics import DEFAULT_METRICS, Metric
from loadgen.analysis.compare.side import Side
from loadgen.errors import BadInput
from tests.helpers.compared_runs import SETTINGS, recorded, saved, server, starts, unanswered


def judged(condition: str, *paths: str) -> Judgement:
    conditions = parse([condition])
    sides = [Side.read(name, path) for name, path in zip("AB", paths, strict=True)]
    (found,) = judge(compare(sides, extra_metrics=[each.metric for each in conditions]), conditions)
    return found


def test_several_conditions_are_parsed() -> None:
    one, two, three = parse(["ttft_p99>+5%, output_throughput < -3 %", "error_rate>1pp"])
    assert (one.metric.name, one.above, one.bound) == ("ttft_p99", True, 0.05)
    assert (two.metric.name, two.above, two.bound) == ("output_throughput", False, -0.03)
    assert (three.metric.name, three.above, three.bound) == ("error_rate", True, 0.01)


@pytest.mark.parametrize(
    "metric", [*DEFAULT_METRICS, Metric.of_latency("ttft", "p95")], ids=lambda metric: metric.name
)
@pytest.mark.parametrize("spelling", [str, str.lower, str.upper])
def test_metrics_have_the_names_that_tables_show(
    metric: Metric, spelling: Callable[[str], str]
) -> None:
    unit = "pp" if metric.is_share else "%"
    for name in (metric.name, metric.title):
        (condition,) = parse([f"{spelling(name)} > 5{unit}"])
        assert condition.metric == metric


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a condition on a change"),
        ("ttft_p99", "is not a condition on a change"),
        ("ttft_p99<500ms", "is not a condition on a change"),
        ("ttft_p99>=5%", "is not a condition on a change"),
        ("ttft>5%", "unknown metric 'ttft'; write one of request_throughput, output_throughput, "),
        (
            "total_token_throughput<-3%",
            "unknown metric 'total_token_throughput'; write total_throughput",
        ),
        ("goodput_requests_per_s<-3%", "write goodput"),
        ("p99_ttft_ms>5%", "write ttft_p99"),
        ("median_itl_ms>5%", "write itl_median"),
        ("ttft_p101>5%", "unknown metric"),
        ("speed<-5%", "goodput, error_rate, server_ttft_mean, "),
        (
            "speed<-5%",
            "or a latency (ttft, ttfo, tpot, icl, itl, e2el) with a statistic (mean, median, p99)",
        ),
        ("ttft_p99>+5pp", "ttft_p99 is not a share; write ttft_p99>+5%"),
        ("error_rate>+5%", "percentage points; write error_rate>+5pp"),
        ("ttft_p99>5.5.5%", "'5.5.5' is not a number"),
    ],
)
def test_malformed_condition_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse([text])
    assert said in str(refused.value)
    assert refused.value.field == "--fail-if"


class TestPointEstimate:
    @pytest.mark.parametrize(
        "condition",
        ["ttft_mean>+20%", "ttft_mean>+30%", "ttft_mean<-20%", "ttft_p99.9>+20%", "ttft_max>+20%"],
    )
    def test_point_does_not_decide(self, tmp_path: Path, condition: str) -> None:
        found = judged(condition, saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=25.0))
        assert found.failed is None
        assert (
            "by the point estimate alone (no interval: measure with --records); give 3 starts of "
            "each side, or --noise" in found.why
        )

    def test_equal_starts_are_decided_by_their_value(self, tmp_path: Path) -> None:
        for name, rate in (("base", 0.5), ("new", 0.25)):
            (tmp_path / name).mkdir()
            for number in range(3):
                data = server(0.0) | {"prefix_hit_rate": rate}
                saved(tmp_path / name / f"{name}{number}.json", ttft=20 + number, server=data)
        found = judged("server_prefix_hit_rate<-5pp", str(tmp_path / "base"), str(tmp_path / "new"))
        assert found.failed
        assert found.why == "-25.00pp is beyond the bound; no interval: no variation was observed"

    def test_fall_to_0_is_minus_100_percent(self, tmp_path: Path) -> None:
        found = judged("goodput<-3%", *_with_goodput(tmp_path, 20.0, 0.0))
        assert found.failed
        assert "-100.0% is beyond" in found.why

    def test_error_rate_goes_by_the_point(self, tmp_path: Path) -> None:
        """One start of three refused everything: chance has no part in that."""
        for number, rate in enumerate((0.0, 0.0, 1.0)):
            for side, errors in (("base", 0.0), ("new", rate)):
                (tmp_path / side).mkdir(exist_ok=True)
                saved(tmp_path / side / f"{side}-{number}.json", error_rate=errors)
        found = judged("error_rate>+1pp", str(tmp_path / "base"), str(tmp_path / "new"))
        assert (found.failed, found.why) == (True, "+33.33pp is beyond the bound")
        assert not judged("error_rate>+40pp", str(tmp_path / "base"), str(tmp_path / "new")).failed

    def test_line_names_condition_and_side(self, tmp_path: Path) -> None:
        found = judged(
            "ttft_mean>+20%", saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=25.0)
        )
        assert str(found).startswith(
            "cannot tell ttft_mean>+20% (B): +25.0% is beyond the bound by the point estimate alone"
        )


class TestInterval:
    def test_fails_if_all_of_the_interval_is_beyond(self, tmp_path: Path) -> None:
        base, new = (
            starts(tmp_path / "base", 20.0, 20.2, 19.9),
            starts(tmp_path / "new", 25.0, 25.1, 24.9),
        )
        found = judged("ttft_mean>+5%", base, new)
        assert found.failed
        assert "all of its 95% interval" in found.why

    def test_passes_if_all_of_the_interval_is_within(self, tmp_path: Path) -> None:
        base, new = (
            starts(tmp_path / "base", 20.0, 20.2, 19.9),
            starts(tmp_path / "new", 20.1, 20.0, 20.3),
        )
        found = judged("ttft_mean>+5%", base, new)
        assert found.failed is False
        assert "is not beyond the bound, with all of its 95% interval" in found.why

    @pytest.mark.parametrize(
        ("base", "new"), [((20.0, 21.0, 19.0), (21.5, 22.5, 20.5)), ((20, 21, 19), (20, 21, 19))]
    )
    def test_cannot_tell_if_the_bound_is_in_the_interval(
        self, tmp_path: Path, base: tuple[float, ...], new: tuple[float, ...]
    ) -> None:
        found = judged(
            "ttft_mean>+5%", starts(tmp_path / "base", *base), starts(tmp_path / "new", *new)
        )
        assert found.failed is None
        assert "but not all of its 95% interval" in found.why

    def test_what_would_tell_is_said(self, tmp_path: Path) -> None:
        """Noise of 5 % a start, a change of 7.5 % and a bound of 5 %: t(68) = 2.0 errors of 1.2 %
        are as far as the change is from the bound.
        """
        base, new = (
            starts(tmp_path / "base", 20.0, 21.0, 19.0),
            starts(tmp_path / "new", 21.5, 22.5, 20.5),
        )
        found = judged("ttft_mean>+5%", base, new)
        assert found.starts == found.to_dict()["starts"] == 35
        assert found.why.endswith(
            "about 35 starts of each side would tell, if the change stays as it is"
        )
        found = judged("ttft_mean>+7%", base, new)
        assert found.starts is None
        assert "no 100 starts would tell: choose another bound" in found.why

    def test_fall_is_judged_by_the_upper_bound(self, tmp_path: Path) -> None:
        base, new = (
            starts(tmp_path / "base", 20.0, 20.2, 19.9),
            starts(tmp_path / "new", 10.0, 10.1, 9.9),
        )
        assert judged("ttft_mean<-45%", base, new).failed
        assert not judged("ttft_mean<-49.9%", base, new).failed

    @pytest.mark.parametrize("metric", ["ttft_mean", "tpot_mean"])
    def test_interval_within_the_run_does_not_decide(self, tmp_path: Path, metric: str) -> None:
        paths = recorded(tmp_path / "a"), recorded(tmp_path / "b", factor=2.0, seed=1)
        found = judged(f"{metric}>+5%", *paths)
        assert found.failed is None
        assert found.why.endswith(
            "noise between restarts unknown: give 3 starts of each side, or --noise"
        )


class TestNotJudged:
    def test_latencies_with_different_error_rates(self, tmp_path: Path) -> None:
        """Half of the requests failed: that the rest was answered in time says nothing of a
        regression.
        """
        paths = saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=19.0, error_rate=0.5)
        for condition in ("ttft_mean>+5%", "ttft_p99<-1%", "e2el_p99>+5%"):
            found = judged(condition, *paths)
            assert found.failed is None
            assert str(found).startswith(
                f"cannot tell {condition} (B): 0.0% of the requests of A failed, 50.0%"
            )
        assert judged("error_rate>+1pp", *paths).failed
        assert judged("request_throughput<-50%", *paths).failed is None  # one start of each

    def test_latencies_of_a_run_without_success(self, tmp_path: Path) -> None:
        paths = unanswered(tmp_path / "a.json"), unanswered(tmp_path / "b.json", SETTINGS)
        conditions = parse(["ttft_mean>+5%"])
        sides = [Side.read(name, path) for name, path in zip("AB", paths, strict=True)]
        (found,) = judge(compare(sides, anyway=True), conditions)
        assert (found.failed, found.why) == (
            None,
            'no request succeeded in a run of "A" and "B"',
        )

    def test_baseline_of_0(self, tmp_path: Path) -> None:
        found = judged("goodput<-3%", *_with_goodput(tmp_path, 0.0, 20.0))
        assert (found.failed, found.why) == (
            None,
            "the baseline is 0, so there is no relative change",
        )

    def test_partial_side(self, tmp_path: Path) -> None:
        found = judged(
            "ttft_mean>+5%",
            saved(tmp_path / "a.json"),
            saved(tmp_path / "b.json", ttft=25, partial="killed"),
        )
        assert found.failed is None
        assert found.why.endswith("b.json: PARTIAL: killed")
        assert found.to_dict()["failed"] is None

    def test_partial_side_does_not_affect_others(self, tmp_path: Path) -> None:
        paths = [
            starts(tmp_path / "a", 20.0, 20.1, 20.2),
            starts(tmp_path / "b", 25.0, 25.1, 25.2),
            saved(tmp_path / "c.json", ttft=26, partial="killed"),
        ]
        conditions = parse(["ttft_mean>+5%"])
        sides = [Side.read(name, path) for name, path in zip("ABC", paths, strict=True)]
        assert [each.failed for each in judge(compare(sides), conditions)] == [True, None]


def test_missing_metric_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not both sides have goodput"):
        judged("goodput<-5%", saved(tmp_path / "a.json"), saved(tmp_path / "b.json", ttft=25.0))


def _with_goodput(folder: Path, *each: float) -> list[str]:
    rates = dict.fromkeys(
        ("steady_output_tokens_per_s", "uncached_input_tokens_per_s", "good_share")
    )
    return [
        saved(folder / f"{number}.json", rates={**rates, "goodput_requests_per_s": value})
        for number, value in enumerate(each)
    ]
