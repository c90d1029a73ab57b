"""The answer of a study: what it found, what raises doubt about it, and what to do next."""

import itertools
from collections import Counter

from loadgen.checks import Verdict
from loadgen.config.target import SIMULATOR
from loadgen.document import Answer, Colour
from loadgen.lab.study.execute.arm_result import ArmResult, Difference
from loadgen.lab.study.execute.arm_result import Verdict as ArmVerdict
from loadgen.lab.study.execute.findings import BUDGET, NOT_YET, Findings
from loadgen.lab.study.report.arm_text import changed_parameters
from loadgen.lab.study.spec.study import Study
from loadgen.report.run_state import MAX_NAMED
from loadgen.report.sections import next_step
from loadgen.report.summary_line import SIMULATED
from loadgen.util.number_format import first_of

REMEDIES = {
    NOT_YET: "`loadgen tune run` resumes it",
    BUDGET: "raise `budget` in the study, and run `loadgen tune run` again",
}
FINISHED, NO_WINNER = "FINISHED", "NO WINNER"
NEW_STORE = "correct what failed, and run the study in another store (`--store`)"


def answer(findings: Findings) -> Answer:
    """Return the answer of a study, what was found first; an unfinished one has no doubts yet."""
    simulated = SIMULATOR in findings.study.engines
    if findings.open:
        parts = [(f"NOT FINISHED: {findings.open}", Colour.YELLOW)]
    else:
        word, colour, outcome = _outcome(findings)
        parts = [(f"{word}: {outcome}", colour)]
        parts += [] if word == FINISHED else [("study finished", Colour.NONE)]
        doubt = _doubt(findings)
        parts += [(doubt, Colour.YELLOW)] if doubt else []
    parts += [(SIMULATED, Colour.NONE)] if simulated else []
    return Answer(tuple(parts), after_study(findings), simulated)


def gain_text(arm: ArmResult, study: Study) -> str:
    """Write the difference of an arm from the reference with its bounds; empty if there is none."""
    if arm.comparison is None:
        return ""
    more_is_better = study.objective.more_is_better
    difference = Difference.from_comparison(arm.comparison, more_is_better=more_is_better)
    return difference.text(1) if difference else ""


def _doubt(findings: Findings) -> str:
    """Say how many runs are SUSPECT, and their most frequent reason; empty if none is."""
    runs = list(itertools.chain.from_iterable(trial.runs.values() for trial in findings.trials))
    doubtful = [run for run in runs if run.findings.verdict == Verdict.SUSPECT]
    if not doubtful:
        return ""
    # The name of a check is before the colon, its value after it.
    reasons = [reason for run in doubtful for reason in run.findings.reasons]
    names = Counter(reason.partition(":")[0] for reason in reasons)
    count = f"{len(doubtful)} of {len(runs)} runs"
    text = f"{f'all {len(runs)} runs' if len(doubtful) == len(runs) else count} SUSPECT"
    if not names:
        return text
    frequent = names.most_common(1)[0][0]
    first = next(reason for reason in reasons if reason.partition(":")[0] == frequent)
    seen = first.removeprefix(f"{frequent}: ").partition(", limit ")[0].partition(": ")[0]
    return f"{text}: {frequent} ({seen})"


def after_study(findings: Findings) -> str:
    """Say what to do after a study, or to go on with it, in one sentence."""
    if findings.open:
        return REMEDIES.get(findings.open, NEW_STORE)
    runs = [run for trial in findings.trials for run in trial.runs.values()]
    doubtful = [run.findings for run in runs if run.findings.verdict == Verdict.SUSPECT]
    names = {reason.partition(":")[0] for each in doubtful for reason in each.reasons}
    verdict = Verdict.SUSPECT if doubtful else Verdict.VALID
    return next_step.once_valid(_of_valid_runs(findings), names, verdict)


def _of_valid_runs(findings: Findings) -> str:
    if findings.nothing_feasible:
        return "loosen the limits of the study, or give it other arms"
    if findings.published:
        return "measure it yourself: `loadgen tune run` runs the same study on your hardware"
    undecided = [arm.name for step in findings.steps for arm in step.arms if arm.undecided]
    also = f"; undecided: {first_of(undecided, MAX_NAMED)}" if undecided else ""
    rival, last = findings.finalist, findings.confirmation
    if rival is None or last is None:
        return f"keep the baseline, or give the study other arms{also}"
    if rival.verdict is ArmVerdict.NOT_SIGNIFICANT:
        return f"keep the baseline, or allow more starts (`decision.repeats` in the study){also}"
    if not findings.confirmed:
        return f"keep the baseline{also}"
    baseline = last.arm(last.reference).planned
    change = changed_parameters(rival.planned, baseline)
    return f"deploy {rival.name}: {change}{also}"


def _outcome(findings: Findings) -> tuple[str, Colour, str]:
    """Return a word for what was found, its colour, and the finding."""
    study, rival = findings.study, findings.finalist
    if findings.nothing_feasible:
        return NO_WINNER, Colour.RED, f"no arm met the limits of the study{_closest(findings)}"
    if rival is not None and rival.verdict is ArmVerdict.AUTHORS_CHOICE:
        return FINISHED, Colour.YELLOW, f"{rival.name}: chosen by the author, not confirmed"
    if rival is not None and findings.published:
        why = ", ".join(filter(None, (rival.verdict, rival.why)))
        chosen = f"{rival.name} ({why})"
        return (
            FINISHED,
            Colour.YELLOW,
            f"{chosen}: the author's choice is not allowed by its results",
        )
    if rival is not None:
        gain = gain_text(rival, study)
        if findings.confirmed:
            over = f" {gain} over the baseline" if gain else ""
            return "WINNER", Colour.GREEN, f"{rival.name}{over}, confirmed in fresh starts"
        what = gain or ", ".join(filter(None, (rival.verdict, rival.why)))
        not_confirmed = f"gain of {rival.name} ({what}) not confirmed in fresh starts"
        return NO_WINNER, Colour.YELLOW, not_confirmed
    if findings.published:
        return (
            FINISHED,
            Colour.NONE,
            "no published result is of an arm that the study expects to win",
        )
    arms = itertools.chain.from_iterable(step.arms for step in findings.steps)
    if any(arm.comparison is not None for arm in arms):
        return NO_WINNER, Colour.NONE, "no arm was better than the baseline"
    return NO_WINNER, Colour.YELLOW, "no arm was compared with the baseline"


def _closest(findings: Findings) -> str:
    if findings.closest is None:
        return ""
    step, arm = findings.closest
    return f"; the closest is {step.step.name}/{arm.name} ({arm.why})"
