"""What a step says of disturbed starts: how many count, and what was done about them."""

from collections.abc import Callable

import pytest

from loadgen.lab.study.execute.findings import StepResult
from loadgen.lab.study.execute.trial import TrialRequest
from loadgen.lab.study.report.findings_text import disturbance_text
from tests.helpers.study_files import study
from tests.helpers.study_walks import Came, noise, walked

QUANTIZED = {"name": "quantization", "choice": {"fp8": {"model": "fp8"}}}


def step(
    name: str, is_disturbed: Callable[[TrialRequest], bool], most: int = 5, starts: int = 10_000
) -> StepResult:
    """A step of which these starts are disturbed; a disturbed start loses a tenth."""

    def truth(request: TrialRequest) -> Came:
        level = (1020.0 if "fp8" in request.arm else 1000.0) * noise(request)
        lost = {"others_cores": 0.5 + request.block / 10, "cores": 2, "quiet": False}
        is_lost = is_disturbed(request)
        return {
            "total": level * (0.9 if is_lost else 1.0),
            "loadgen": {"disturbance": lost if is_lost else {}},
        }

    made = study(QUANTIZED, decision={"repeats": {"least": most, "most": most}})
    return next(each for each in walked(made, truth, starts).steps if each.step.name == name)


def test_undisturbed_step_says_so() -> None:
    text = "no start that counts was disturbed by other programs"
    assert disturbance_text(step("quantization", lambda request: False), "short") == text


@pytest.mark.parametrize("most", [2, 3, 5])
def test_disturbed_starts_count_and_widen_bounds(most: int) -> None:
    def is_disturbed(request: TrialRequest) -> bool:
        return request.step == "quantization" and (request.arm, request.block) in {
            ("baseline", 1),
            ("fp8", 0),
        }

    assert disturbance_text(step("quantization", is_disturbed, most), "short") == (
        f"other programs disturbed 2 of {2 * most} starts, which were not repeated; they count as "
        "they are, so bounds are wider, and one is missing where an arm and the reference were "
        "disturbed unequally often"
    )


@pytest.mark.parametrize(
    ("blocks", "text"),
    [
        (
            (1,),
            "other programs disturbed 1 of 3 starts, which were not repeated; the noise is that of "
            "the others",
        ),
        ((0, 1), "other programs disturbed 2 of 3 starts, which were not repeated"),
    ],
)
def test_noise_step_says_whether_its_noise_is_without_them(
    blocks: tuple[int, ...], text: str
) -> None:
    found = step("noise", lambda request: request.step == "noise" and request.block in blocks)
    assert disturbance_text(found, "short") == text


def test_step_before_its_first_comparison_only_counts_them() -> None:
    found = step("quantization", lambda request: request.step == "quantization", starts=5)
    assert found.open
    assert (
        disturbance_text(found, "short")
        == "other programs disturbed 2 of 2 starts, which were not repeated"
    )
