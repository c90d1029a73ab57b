"""The answer of a comparison: what changed, how sure that is, and what may be wrong."""

from pathlib import Path

import pytest

from loadgen.analysis.compare.answer import parts
from loadgen.analysis.compare.comparison import compare
from loadgen.analysis.compare.side import Side
from loadgen.report.summary_line import Colour
from tests.helpers.compared_runs import FEW, recorded, saved, starts


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def answered(base: str, new: str, *, anyway: bool = False) -> dict[str, Colour]:
    comparison = compare([Side.read("base", base), Side.read("new", new)], anyway=anyway)
    return dict(parts(comparison, comparison.candidates[0]))


def test_significant_changes_come_first_with_their_word() -> None:
    found = answered(starts(Path("a"), 20.0, 20.2, 19.9), starts(Path("b"), 10.0, 10.1, 9.9))
    assert found == {
        "new: TTFT p99 -50.1% (20 to 10 ms), TPOT p99 -50.1% (10 to 5 ms) and E2EL p99 -50.1% "
        "(50.1 to 25 ms), all better; no clear change of throughput (-2.9% to +8.8%)": Colour.GREEN,
        (
            "95 % intervals: TTFT p99 -51.2% to -48.9%, TPOT p99 -51.5% to -48.7%, E2EL p99 -51.1% "
            "to -49.0%, from 3 runs of each"
        ): Colour.NONE,
        "all VALID": Colour.GREEN,
    }


def test_anything_worse_is_red() -> None:
    found = answered(starts(Path("a"), 10.0, 10.1, 9.9), starts(Path("b"), 20.0, 20.2, 19.9))
    first, colour = next(iter(found.items()))
    assert first.split("; ")[0].endswith(", all worse")
    assert colour is Colour.RED


def test_interval_near_0_is_the_same() -> None:
    many = FEW.replace(num_prompts=200)
    one, other = (2000.0, 2000.1, 2000.2), (2000.05, 2000.15, 2000.25)
    found = answered(
        starts(Path("a"), *one, settings=many), starts(Path("b"), *other, settings=many)
    )
    first = next(iter(found))
    assert first.startswith("new: throughput, TTFT p99, TPOT p99 and E2EL p99 the same (within 0.")


def test_one_run_of_each_is_a_doubt() -> None:
    found = answered(recorded(Path("a")), recorded(Path("b"), factor=2.0, seed=1))
    assert (
        found["from one run of each: a restart may change as much, give 3 starts"] is Colour.YELLOW
    )
    assert ", which may be chance" in next(iter(found))


def test_results_alone_may_differ_by_chance() -> None:
    found = answered(saved(Path("a")), saved(Path("b"), ttft=25.0, simulated=True))
    assert next(iter(found)) == (
        "new: throughput -1.3% (21.8 to 21.5 req/s), TTFT p99 +25.0% (20 to 25 ms), "
        "TPOT p99 +25.0% (10 to 12.5 ms) and E2EL p99 +25.0% (50 to 62.5 ms)"
    )
    assert found["no intervals: this may be chance"] is Colour.YELLOW
    assert "simulated engine" in found


def test_what_prevents_a_comparison_is_red_or_a_doubt() -> None:
    other = FEW.replace(request_rate=40.0)
    found = answered(
        saved(Path("a"), verdict="SUSPECT"),
        saved(Path("b"), settings=other, error_rate=0.5, partial="x"),
        anyway=True,
    )
    assert found["error rates differ, so that latencies are of other requests"] is Colour.RED
    assert found["different workloads"] is Colour.YELLOW
    assert found["base SUSPECT, new VALID and partial"] is Colour.RED
    assert "errors +50.00pp" in next(iter(found))
