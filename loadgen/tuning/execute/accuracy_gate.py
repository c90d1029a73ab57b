"""Gate: whether an arm that may have changed the model still answers as many questions as the baseline."""

from collections.abc import Iterable

from loadgen.stats import mcnemar
from loadgen.tuning.execute.trial import Answered, Trial, Wanted
from loadgen.tuning.plan.plan import NOISE
from loadgen.tuning.spec.arm import Arm, baseline
from loadgen.tuning.spec.study import Study
from loadgen.util.number_format import percent

# Knobs that share out and schedule the same work: whatever else an arm changes may change what is computed.
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


def lossy(arm: Arm, base: Arm) -> bool:
    """Whether an arm may answer otherwise than another: by its engine, its model, a knob that is not EXACT, or by flags
    and variables of the engine's own, of which nobody knows what they do.
    """
    if any(getattr(arm, part) != getattr(base, part) for part in ("engine", "model", "raw", "env")):
        return True
    return any(arm.knobs.get(name) != base.knobs.get(name) for name in {*arm.knobs, *base.knobs} - EXACT)


def asks(wanted: Wanted, arm: Arm, study: Study, trials: Iterable[Trial]) -> bool:
    """Whether the questions are to be asked in a start: until they have been, of the baseline before the first
    stage, and of a lossy arm in each step.

    Args:
        wanted: What the start is for.
        arm: Its arm.
        study: Whose.
        trials: All that have ended.
    """
    if study.objective.accuracy is None or not (wanted.step == NOISE or lossy(arm, baseline(study))):
        return False
    place = wanted.step, wanted.arm
    return not any((each.wanted.step, each.wanted.arm) == place and each.answered is not None for each in trials)


class Gate:
    """Holds arms against the baseline.

    An arm is out if it has lost more than the study allows, and if chance alone seldom makes such a loss: by McNemar's
    test on the questions that one of the two answered right and the other did not (Psychometrika 12, 1947), in its
    exact form, one-sided, at the confidence of the study's decisions.

    Args:
        study: Whose.
        answered: What the baseline answered; None where it was not asked.
    """

    def __init__(self, study: Study, answered: Answered | None) -> None:
        self._accuracy, self._base, self._answered = study.objective.accuracy, baseline(study), answered
        self._chance = 1 - study.decision.confidence

    def blind(self, answered: Answered | None) -> str:
        """Why nothing could be known of any arm with such answers of the baseline; empty where it could.

        Args:
            answered: What the baseline answered; None where it was not asked.
        """
        if self._accuracy is None or answered is None:
            return ""
        remedy = "give questions that it answers, or leave accuracy out"
        if answered.trouble:
            return f"{answered.trouble}; {remedy}"
        knew, count = sum(answered.right), len(answered.right)
        few = knew < mcnemar.min_significant_losses(self._chance)
        return f"it answers {knew} of {count} questions right, too few to see what is lost; {remedy}" if few else ""

    def judged(self, arm: Arm, trials: Iterable[Trial]) -> tuple[bool, str]:
        """Whether an arm is out, and what there is to say of its answers: nothing where the gate is not for it.

        Args:
            arm: Which.
            trials: Its starts, of which the first that was asked counts.
        """
        if self._accuracy is None or not lossy(arm, self._base):
            return False, ""
        found = next((trial.answered for trial in trials if trial.answered is not None), None)
        if found is None or found.trouble:
            return True, "it was not asked what it knows" if found is None else f"it: {found.trouble}"
        assert self._answered is not None  # of a baseline that was not asked, or is blind, no arm is started
        return self._held(found, self._answered, self._accuracy.max_loss)

    def _held(self, found: Answered, base: Answered, most: float) -> tuple[bool, str]:
        count, knew, least = len(base.right), sum(base.right), mcnemar.min_significant_losses(self._chance)
        if found.questions != base.questions:
            return True, "it was asked other questions than the baseline"
        lost = sum(before and not now for before, now in zip(base.right, found.right, strict=True))
        won = sum(now and not before for before, now in zip(base.right, found.right, strict=True))
        counts = f"answers {sum(found.right)} of {count} questions right, the baseline {knew}"
        loss, chance = (lost - won) / count, mcnemar.one_sided_p(lost, won)
        if loss > most and chance <= self._chance:
            odds = f"chance loses as much in {percent(chance, 1)} of cases"
            return True, f"{counts}: {percent(loss, 1)} is lost and at most {percent(most, 1)} may be; {odds}"
        return False, f"{counts}; a loss of less than {percent(max(most, least / count), 1)} may go unseen"
