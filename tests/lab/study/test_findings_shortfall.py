"""A study whose budget is spent says why nothing is decided, and how much more it needs."""

import dataclasses
import random

from loadgen.lab.study.execute.findings import BUDGET, Findings
from loadgen.lab.study.execute.trial import TrialRequest
from loadgen.lab.study.report.findings_text import shortfall
from tests.helpers.study_files import study
from tests.helpers.study_walks import Came, walked

QUANTIZED = {"name": "quantization", "choice": {"fp8": {"model": "fp8"}}}
DECISION = {"min_effect": 0.05, "repeats": {"least": 2, "most": 7}}


def noisy(request: TrialRequest) -> Came:
    """Starts that differ by a fifth after the first step; other processes ran beside those of
    later blocks.
    """
    random_ = random.Random(f"{request.step} {request.arm} {request.block}")
    lost = (
        {"others_cores": 0.5 + 0.1 * request.block, "cores": 2, "quiet": False}
        if request.block > 1
        else {}
    )
    level = 1400.0 if "fp8" in request.arm else 1000.0
    spread = 0.02 if request.step == "noise" else 0.2
    return {"total": level * random_.lognormvariate(0, spread), "loadgen": {"disturbance": lost}}


def spent(starts: int) -> Findings:
    """The findings of a study whose budget allowed so many starts."""
    found = walked(study(QUANTIZED, decision=DECISION), noisy, starts)
    return dataclasses.replace(found, open=BUDGET)


def test_noise_and_disturbances_are_named() -> None:
    lines = list(shortfall(spent(11)))
    assert lines[0].startswith("quantization: noise ")
    assert lines[0].endswith("of one start; in 4 of 8 runs other processes used 0.7 to 0.8 cores")


def test_blocks_and_time_that_it_would_take_are_named() -> None:
    line = list(shortfall(spent(11)))[1]
    assert line.startswith("quantization: at this noise a gain of ")
    assert " (the largest so far) needs about " in line
    assert line.endswith("; repeats allows 7")


def test_gain_that_is_assumed_is_twice_the_smallest_that_counts() -> None:
    def equal(request: TrialRequest) -> Came:
        return {"total": 1000.0 * random.Random(str(request)).lognormvariate(0, 0.02)}

    found = dataclasses.replace(walked(study(QUANTIZED, decision=DECISION), equal, 7), open=BUDGET)
    assert (
        "a gain of 10.0% (twice min_effect: no arm has gained more than min_effect so far)"
        in list(shortfall(found))[1]
    )


def test_undecided_study_within_its_budget_lacks_nothing() -> None:
    assert not list(shortfall(walked(study(QUANTIZED, decision=DECISION), noisy, 11)))


def test_budget_that_ends_in_the_noise_step_names_nothing() -> None:
    assert not list(shortfall(spent(2)))
