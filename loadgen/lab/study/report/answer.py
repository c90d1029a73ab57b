"""Answer: what a study found and what raises doubt about it, in the words of title, badge and
last line.
"""

import itertools
from collections import Counter
from dataclasses import dataclass

from loadgen.document import NoteKind
from loadgen.lab.study.execute.arm_result import Verdict
from loadgen.lab.study.execute.findings import BUDGET, NOT_YET, Findings
from loadgen.lab.study.report.arm_text import changed_parameters
from loadgen.report.run_state import MAX_NAMED
from loadgen.util.number_format import first_of

REMEDIES = {
    NOT_YET: "`loadgen tune run` resumes it",
    BUDGET: "raise `budget` in the study, and run `loadgen tune run` again",
}
NEW_STORE = "correct what failed, and run the study in another store (`--store`)"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a study.

    Attributes:
        kind: Its colour on a page.
        outcome: What was found, in a few words.
        doubt: How many runs are doubtful; empty: none.
        reason: The most frequent reason of the doubt.
    """

    kind: NoteKind
    outcome: str
    doubt: str = ""
    reason: str = ""

    @property
    def headline(self) -> str:
        """The answer without the reason of the doubt."""
        return f"{self.outcome}, but {self.doubt}" if self.doubt else self.outcome

    @property
    def text(self) -> str:
        """The answer."""
        return f"{self.headline}: {self.reason}" if self.reason else self.headline


def answer(findings: Findings) -> Answer:
    """Return the answer of a study; an unfinished one has no doubts yet."""
    if findings.open:
        return Answer("warning", f"not finished: {findings.open}")
    kind, outcome = _outcome(findings)
    runs = list(itertools.chain.from_iterable(trial.runs.values() for trial in findings.trials))
    doubtful = [run for run in runs if run.findings.verdict == "SUSPECT"]
    if not doubtful:
        return Answer(kind, outcome)
    # The name of a check is before the colon, its value after it.
    reasons = [reason for run in doubtful for reason in run.findings.reasons]
    names = Counter(reason.partition(":")[0] for reason in reasons)
    frequent = names.most_common(1)[0][0] if names else ""
    first = next((reason for reason in reasons if reason.partition(":")[0] == frequent), "")
    doubt = f"{len(doubtful)} of {len(runs)} runs are SUSPECT"
    shown: NoteKind = "danger" if kind == "danger" else "warning"
    return Answer(shown, outcome, doubt, first.partition(", limit ")[0])


def after_study(findings: Findings) -> str:
    """Say what to do after a study, or to go on with it, in one sentence."""
    if findings.open:
        return REMEDIES.get(findings.open, NEW_STORE)
    if findings.nothing_feasible:
        return "loosen the limits of the study, or give it other arms"
    if findings.published:
        return "measure it yourself: `loadgen tune run` runs the same study on your hardware"
    undecided = [arm.name for step in findings.steps for arm in step.arms if arm.undecided]
    also = f"; undecided: {first_of(undecided, MAX_NAMED)}" if undecided else ""
    rival, last = findings.finalist, findings.confirmation
    if rival is None or last is None:
        return f"keep the baseline, or give the study other arms{also}"
    if rival.verdict is Verdict.NOT_SIGNIFICANT:
        return f"keep the baseline, or allow more starts (`decision.repeats` in the study){also}"
    if not findings.confirmed:
        return f"keep the baseline{also}"
    baseline = last.arm(last.reference).planned
    change = changed_parameters(rival.planned, baseline)
    after = ", after a repeat on an idle machine" if answer(findings).doubt else ""
    return f"adopt {rival.name}{after}: {change}{also}"


def _outcome(findings: Findings) -> tuple[NoteKind, str]:
    if findings.nothing_feasible:
        return "danger", "no arm met the limits of the study"
    rival = findings.finalist
    if rival is not None and rival.verdict is Verdict.AUTHORS_CHOICE:
        return "warning", "chosen by the author, not confirmed"
    if rival is not None and findings.published:
        return "warning", "the author's choice is not allowed by its results"
    if rival is not None:
        return (
            ("tip", "gain confirmed") if findings.confirmed else ("warning", "gain not confirmed")
        )
    if findings.published:
        return "info", "no published result is of an arm that the study expects to win"
    arms = itertools.chain.from_iterable(step.arms for step in findings.steps)
    if any(arm.comparison is not None for arm in arms):
        return "info", "no arm was better than the baseline"
    return "warning", "no arm was compared with the baseline"
