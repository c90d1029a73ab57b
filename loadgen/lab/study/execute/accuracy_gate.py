"""The accuracy gate: rejects an arm that answers significantly fewer questions right than the baseline."""

from collections.abc import Iterable

from loadgen.lab.study.execute.trial import Answers, Trial, TrialRequest, first_answers
from loadgen.lab.study.plan.plan import NOISE
from loadgen.lab.study.spec.arm_spec import ArmSpec, baseline
from loadgen.lab.study.spec.study import Study
from loadgen.stats import hypothesis_tests
from loadgen.util.number_format import percent

# Knobs that only distribute and schedule the same work; any other change may change what is computed.
EXACT = {
    "served_name",
    "tensor_parallel",
    "pipeline_parallel",
    "data_parallel",
    "expert_parallel",
    "context_len",
    "max_batched_tokens",
    "max_seqs",
    "chunked_prefill",
    "prefix_cache",
    "memory_fraction",
}


def lossy(arm: ArmSpec, base: ArmSpec) -> bool:
    """Return whether an arm may answer differently from another.

    That is: engine, model or a knob that is not EXACT differ, or flags and variables of the engine, whose effect is
    unknown.
    """
    if any(getattr(arm, part) != getattr(base, part) for part in ("engine", "model", "raw", "env")):
        return True
    return any(arm.knobs.get(name) != base.knobs.get(name) for name in {*arm.knobs, *base.knobs} - EXACT)


def asks_questions(request: TrialRequest, arm: ArmSpec, study: Study, trials: Iterable[Trial]) -> bool:
    """Return whether a start asks the questions: once for the baseline, and once in each step for a lossy arm."""
    if study.objective.accuracy is None or not (request.step == NOISE or lossy(arm, baseline(study))):
        return False
    place = request.step, request.arm
    return first_answers(each for each in trials if (each.request.step, each.request.arm) == place) is None


class AccuracyGate:
    """Compares the answers of arms with the baseline's.

    An arm is rejected if it has lost more than the study allows, and if the loss is significant: by McNemar's test on
    the questions that only one of the two answered right (Psychometrika 12, 1947), in its exact form, one-sided, at the
    confidence of the study's decisions.

    Args:
        study: The study.
        base_answers: Answers of the baseline; None if it was not asked.
    """

    def __init__(self, study: Study, base_answers: Answers | None) -> None:
        self._accuracy, self._base, self._base_answers = study.objective.accuracy, baseline(study), base_answers
        self._chance = 1 - study.decision.confidence

    def baseline_unusable_reason(self, answers: Answers | None) -> str:
        """Return why no arm could be judged by these answers of the baseline; empty if arms can be judged.

        Args:
            answers: Answers of the baseline; None if it was not asked.
        """
        if self._accuracy is None or answers is None:
            return ""
        remedy = "give questions that it answers, or leave accuracy out"
        if answers.trouble:
            return f"{answers.trouble}; {remedy}"
        right, count = sum(answers.right), len(answers.right)
        few = right < hypothesis_tests.min_significant_losses(self._chance)
        return f"it answers {right} of {count} questions right, too few to detect a loss; {remedy}" if few else ""

    def judge(self, arm: ArmSpec, trials: Iterable[Trial]) -> tuple[bool, str]:
        """Judge the answers of an arm.

        Returns:
            Whether the arm is rejected, and a remark about its answers; empty if it cannot have changed them.
        """
        if self._accuracy is None or not lossy(arm, self._base):
            return False, ""
        answers = first_answers(trials)
        if answers is None or answers.trouble:
            return True, "it did not answer the questions" if answers is None else f"it: {answers.trouble}"
        assert self._base_answers is not None  # without usable answers of the baseline no arm is started
        return self._compare(answers, self._base_answers, self._accuracy.max_loss)

    def _compare(self, found: Answers, base: Answers, most: float) -> tuple[bool, str]:
        count, knew, least = len(base.right), sum(base.right), hypothesis_tests.min_significant_losses(self._chance)
        if found.questions != base.questions:
            return True, "its questions differ from the baseline's"
        lost = sum(before and not now for before, now in zip(base.right, found.right, strict=True))
        won = sum(now and not before for before, now in zip(base.right, found.right, strict=True))
        counts = f"answers {sum(found.right)} of {count} questions right, the baseline {knew}"
        loss, chance = (lost - won) / count, hypothesis_tests.mcnemar_one_sided_p(lost, won)
        if loss > most and chance <= self._chance:
            p_value = f"chance alone loses as much in {percent(chance, 1)} of cases"
            return True, f"{counts}: a loss of {percent(loss, 1)}, at most {percent(most, 1)} is allowed; {p_value}"
        return False, f"{counts}; a loss below {percent(max(most, least / count), 1)} may go undetected"
