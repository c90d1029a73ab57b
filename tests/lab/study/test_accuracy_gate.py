"""The accuracy gate: which arms answer questions, the allowed loss, and arms that exceed it."""

from typing import Any

import pytest

from loadgen.lab.study.execute.accuracy_gate import AccuracyGate, asks_questions, lossy
from loadgen.lab.study.execute.findings import ArmResult, Findings, Verdict
from loadgen.lab.study.execute.trial import Answers, Trial, TrialRequest
from loadgen.lab.study.execute.walk import Walk
from loadgen.lab.study.plan.plan import NOISE, PlannedArm
from loadgen.lab.study.plan.planner import Planner
from tests.helpers.study_files import study
from tests.helpers.study_walks import trial

SEQS: dict[str, Any] = {"name": "seqs", "choice": {"more": {"knobs": {"max_seqs": 512}}}}
CHANGED: dict[str, Any] = {"name": "changed", "choice": {"fp8": {"model": "fp8"}}}


def guarded(*stages: dict[str, Any], max_loss: float = 0.01, **parts: Any):
    accuracy = {"workload": "short", "accuracy": {"max_loss": max_loss}}
    return study(*stages, objective=accuracy, **parts)


def answered(right: int, of: int = 60, *, won: int = 0, **parts: Any) -> Answers:
    """The first questions right, and of the last ones some that others get wrong."""
    good = tuple(number < right - won or number >= of - won for number in range(of))
    return Answers(**{"questions": "q", "right": good} | parts)


BASE = answered(57)


@pytest.mark.parametrize(
    ("change", "is_lossy"),
    [
        (
            {
                "knobs": {
                    "max_seqs": 64,
                    "max_batched_tokens": 4096,
                    "prefix_cache": False,
                    "tensor_parallel": 2,
                }
            },
            False,
        ),
        ({"replicas": 2}, False),
        ({"model": "fp8"}, True),
        ({"engine": "sglang"}, True),
        ({"knobs": {"quantization": "fp8"}}, True),
        ({"knobs": {"kv_dtype": "fp8"}}, True),
        ({"knobs": {"speculative": {"method": "ngram", "num_speculative_tokens": 3}}}, True),
        ({"knobs": {"attention_backend": "FLASHINFER"}}, True),
        ({"raw": ["--seed 3"]}, True),
        ({"env": {"VLLM_USE_DEEP_GEMM": 1}}, True),
    ],
)
def test_whatever_may_change_what_is_computed_is_lossy(
    change: dict[str, Any], is_lossy: bool
) -> None:
    planner = Planner(study({"name": "s", "choice": {"arm": change}}))
    arms = {each.name: each.spec for each in planner.stage(0).arms}
    assert lossy(arms["arm"], arms["baseline"]) is is_lossy
    assert not lossy(arms["baseline"], arms["baseline"])


class TestWhoIsAsked:
    def planned(self, which: dict[str, Any], name: str) -> PlannedArm:
        arms = Planner(guarded(which)).stage(0).arms
        return next(arm for arm in arms if arm.name == name)

    def test_the_baseline_before_the_first_stage_and_lossy_arms_in_each(self) -> None:
        asked = guarded(CHANGED)
        fp8, base = self.planned(CHANGED, "fp8").spec, self.planned(CHANGED, "baseline").spec
        assert asks_questions(TrialRequest(NOISE, 0, "baseline"), base, asked, [])
        assert not asks_questions(TrialRequest("changed", 0, "baseline"), base, asked, [])
        assert asks_questions(TrialRequest("changed", 0, "fp8"), fp8, asked, [])
        assert not asks_questions(
            TrialRequest("seqs", 0, "more"), self.planned(SEQS, "more").spec, asked, []
        )

    def test_once_it_has_answered_it_is_not_asked_again_in_that_step(self) -> None:
        fp8 = self.planned(CHANGED, "fp8").spec
        silent, spoke = (
            trial(TrialRequest("changed", block, "fp8"), 1000.0, answers=said)
            for block, said in enumerate((None, answered(57)))
        )
        assert asks_questions(TrialRequest("changed", 2, "fp8"), fp8, guarded(CHANGED), [silent])
        assert not asks_questions(
            TrialRequest("changed", 2, "fp8"), fp8, guarded(CHANGED), [silent, spoke]
        )
        assert asks_questions(
            TrialRequest("confirmation", 0, "changed/fp8"), fp8, guarded(CHANGED), [silent, spoke]
        )

    def test_study_without_a_gate_asks_no_questions(self) -> None:
        arm = self.planned(CHANGED, "fp8").spec
        assert not asks_questions(TrialRequest("changed", 0, "fp8"), arm, study(CHANGED), [])
        gate = AccuracyGate(study(CHANGED), None)
        assert gate.judge(arm, []) == (False, "")


class TestTheLimit:
    def judged(self, found: Answers | None, base: Answers, **parts: Any) -> tuple[bool, str]:
        asked = guarded(CHANGED, **parts)
        arm = next(each for each in Planner(asked).stage(0).arms if each.name == "fp8").spec
        trials = [trial(TrialRequest("changed", 0, "fp8"), 1000.0, answers=found)]
        return AccuracyGate(asked, base).judge(arm, trials)

    def test_five_of_sixty_are_the_fewest_that_chance_seldom_loses(self) -> None:
        assert [self.judged(answered(57 - lost), answered(57))[0] for lost in range(7)] == [
            False
        ] * 5 + [True] * 2

    def test_the_counts_are_told(self) -> None:
        out, said = self.judged(answered(51), answered(57))
        assert out
        assert said == (
            "answers 51 of 60 questions right, the baseline 57: a loss of 10.0%, at most 1.0% is "
            "allowed; chance alone loses as much in 1.6% of cases"
        )
        out, said = self.judged(answered(56), answered(57))
        assert not out
        assert (
            said == "answers 56 of 60 questions right, the baseline 57; a loss below 8.3% may go "
            "undetected"
        )

    def test_questions_that_are_won_make_a_loss_more_likely_to_be_chance(self) -> None:
        assert self.judged(answered(52), answered(57))[0]
        assert not self.judged(answered(52, won=3), answered(57))[0]

    def test_a_loss_within_the_limit_is_no_loss_however_sure_it_is(self) -> None:
        assert self.judged(answered(900, 1000), answered(950, 1000))[0]
        assert not self.judged(answered(900, 1000), answered(950, 1000), max_loss=0.05)[0]

    def test_more_confidence_asks_for_a_greater_loss(self) -> None:
        strict: Any = {"decision": {"confidence": 0.99}}
        assert not self.judged(answered(52), answered(57), **strict)[0]
        assert self.judged(answered(50), answered(57), **strict)[0]

    @pytest.mark.parametrize(
        ("found", "base", "why"),
        [
            (None, answered(57), "it did not answer the questions"),
            (answered(0, trouble="it is gone"), answered(57), "it: it is gone"),
            (answered(57, questions="r"), answered(57), "its questions differ from the baseline's"),
        ],
    )
    def test_arm_without_comparable_answers_is_out(
        self, found: Answers | None, base: Answers, why: str
    ) -> None:
        assert self.judged(found, base) == (True, why)

    def test_questions_without_an_answer_in_time_are_not_compared(self) -> None:
        late = answered(52, late=tuple(range(52, 57)))
        assert self.judged(late, answered(57)) == (
            False,
            "answers 52 of 55 questions right, the baseline 52; a loss below 9.1% may go "
            "undetected",
        )
        assert self.judged(answered(52), answered(57))[0]


LATE = answered(0, trouble="of 60 questions 4 or more got no answer", late=(0, 1, 2, 3))


class TestGatedStudy:
    def found(self, fp8: Answers | None, base: Answers = BASE) -> Findings:
        """fp8 is half as fast again; whoever is to be asked is."""
        asked = guarded(CHANGED, SEQS)
        walk = Walk(asked, Planner(asked))
        ended: list[Trial] = []
        while walk.request is not None:
            request, arm = walk.request, walk.planned.spec
            fast = 1500.0 if arm.model == "fp8" else 1000.0
            said = (
                (fp8 if arm.model == "fp8" else base)
                if asks_questions(request, arm, asked, ended)
                else None
            )
            jitter = 1 + 0.001 * ((request.block * 7 + len(request.arm)) % 3)
            ended.append(trial(request, fast * jitter, walk.planned.workloads, answers=said))
            walk.add(ended[-1])
        return walk.found()

    def arm(self, found: Findings, step: int, name: str) -> ArmResult:
        return found.steps[step].arm(name)

    def test_an_arm_that_has_lost_too_much_is_infeasible_after_its_first_start(self) -> None:
        found = self.found(answered(51))
        fp8 = self.arm(found, 1, "fp8")
        assert fp8.verdict is Verdict.INFEASIBLE
        assert fp8.why.startswith(
            "answers 51 of 60 questions right, the baseline 57: a loss of 10.0%"
        )
        assert len(fp8.trials) == 1
        assert found.steps[1].won == ()

    def test_an_arm_whose_answers_never_come_in_time_is_not_judged(self) -> None:
        found = self.found(LATE)
        fp8 = self.arm(found, 1, "fp8")
        assert fp8.verdict is Verdict.NOT_JUDGED
        assert fp8.why == ("the answers are not judged: of 60 questions 4 or more got no answer")
        assert all(trial.answers is LATE for trial in fp8.trials)  # it was asked at each start
        assert found.steps[1].won == ()
        assert not found.nothing_feasible

    def test_answers_that_come_at_a_later_start_count(self) -> None:
        asked = guarded(CHANGED)
        walk = Walk(asked, Planner(asked))
        while walk.request is not None:
            request, fp8 = walk.request, "fp8" in walk.request.arm
            late = fp8 and request.block == 0
            speed = (1500.0 if fp8 else 1000.0) * (1 + 0.001 * request.block)
            said = LATE if late else answered(57)
            walk.add(trial(request, speed, walk.planned.workloads, answers=said))
        assert self.arm(walk.found(), 1, "fp8").verdict is Verdict.ADOPTED

    def test_a_baseline_whose_answers_are_late_is_asked_again_before_the_study_ends(self) -> None:
        found = self.found(answered(57), LATE)
        assert len(found.trials) == 3
        assert found.open.startswith("noise: baseline fails, of 60 questions 4 or more got no")

    def test_arm_within_the_allowed_loss_may_win(self) -> None:
        found = self.found(answered(56))
        fp8 = self.arm(found, 1, "fp8")
        assert fp8.verdict is Verdict.ADOPTED
        assert (
            fp8.why
            == "answers 56 of 60 questions right, the baseline 57; a loss below 8.3% may go "
            "undetected"
        )
        assert self.arm(found, 2, "changed/fp8").verdict is Verdict.REFERENCE
        assert self.arm(found, 2, "changed/fp8").why == fp8.why

    @pytest.mark.parametrize(
        ("base", "why"),
        [
            (answered(4), "it answers 4 of 60 questions right, too few to detect a loss"),
            (
                answered(57, trouble="of 60 questions 4 or more got no answer"),
                "of 60 questions 4 or more got no answer",
            ),
        ],
    )
    def test_baseline_that_can_lose_no_answer_ends_the_study(self, base: Answers, why: str) -> None:
        found = self.found(answered(56), base)
        assert len(found.trials) == 1
        assert (
            found.open
            == f"noise: baseline fails, {why}; give questions that it answers, or leave accuracy "
            "out"
        )
        assert not found.nothing_feasible

    def test_baseline_with_few_right_answers_continues(self) -> None:
        assert self.found(answered(5), answered(5)).open == ""

    def test_arm_that_was_never_asked_cannot_win(self) -> None:
        assert self.arm(self.found(None), 1, "fp8").verdict is Verdict.INFEASIBLE

    @pytest.mark.parametrize(
        ("right", "verdict", "why"),
        [
            (
                50,
                Verdict.INFEASIBLE,
                "answers 50 of 60 questions right, the baseline 57: a loss of 11.7%",
            ),
            (
                56,
                Verdict.DRAWN,
                "answers 56 of 60 questions right, the baseline 57; a loss below 8.3% may go",
            ),
        ],
    )
    def test_drawn_arms_are_gated(self, right: int, verdict: Verdict, why: str) -> None:
        joint = {
            "name": "j",
            "joint": {"quantization": {"choice": ["fp8", "awq"]}},
            "trials": 2,
            "sampler": "random",
        }
        asked = guarded(joint)
        walk = Walk(asked, Planner(asked))
        while walk.step is None or walk.step.kind in ("noise", "drawn"):
            assert walk.request is not None
            said = answered(57 if walk.request.step == NOISE else right)
            walk.add(
                trial(
                    walk.request, 1000.0 + walk.request.block, walk.planned.workloads, answers=said
                )
            )
        for drawn in walk.found().steps[1].arms:
            assert drawn.verdict is verdict
            assert drawn.why.startswith(why)
