"""Rule: one way in which the arithmetic of a tool differs from loadgen's, which can be switched off."""

from collections.abc import Collection, Container
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """A difference between a tool and loadgen.

    Attributes:
        name: For JSON.
        text: What the tool does, and what loadgen does instead.
    """

    name: str
    text: str


Rules = Container[Rule]


class RuleProbe:
    """Active rules that record which rules were asked about: a result cannot depend on the others.

    Args:
        active: The active rules.

    Attributes:
        answers: The rules that were asked about, and whether they are active.
    """

    def __init__(self, active: Collection[Rule]) -> None:
        self._active = active
        self.answers: dict[Rule, bool] = {}

    def __contains__(self, rule: object) -> bool:
        assert isinstance(rule, Rule)
        return self.answers.setdefault(rule, rule in self._active)


FROM_SENT = Rule("from_sent", "its clock starts when it sends the request, loadgen's when the request was due")
CONNECTING = Rule(
    "connecting",
    "its clock starts before a connection is opened; loadgen counts connecting separately (the time is unknown, "
    "and not counted here, if the connection was open before)",
)
MEAN_ITL = Rule("mean_itl", "ITL is the mean gap of each request, by its usage; loadgen's is over the observed gaps")
N_MINUS_1 = Rule("n_minus_1", "TPOT divides by output tokens - 1; loadgen leaves out all tokens of the first event")
EVENT_IS_TOKEN = Rule("event_is_token", "an event counts as one token; loadgen counts the tokens in it")
SPREAD = Rule(
    "spread",
    "its peak counts the tokens of an event evenly over the gap before it, and those of the first event as one; "
    "loadgen counts them when they arrive",
)
WHOLE_SECONDS = Rule(
    "whole_seconds",
    "its peak counts in whole seconds after the first send; loadgen takes the busiest second wherever it begins",
)
TOUCHED_SECONDS = Rule(
    "touched_seconds",
    "requests are concurrent if they share a whole second; loadgen counts those in flight at one moment",
)
FORGIVING = Rule(
    "forgiving",
    "a stream that ends without a finish reason, or with an error, is a success; for loadgen it failed",
)
PLANNED_INPUT = Rule("planned_input", "input tokens are those of the data set; loadgen uses the server's count")
ZERO = Rule("zero", "what could not be measured counts as 0; for loadgen it is n/a, and not in means and percentiles")

# Notes on values that cannot be computed, or that are incomplete.
RETOKENIZED = Rule("retokenized", "n/a: it would have tokenized the text, which is not in the records")
UNPLANNED = Rule("unplanned", "n/a: the number of tokens of some prompts is unknown")
DIGITS = Rule("digits", "loadgen's percentiles come from a histogram with three significant digits")
ERRED = Rule(
    "erred", "events after an error inside a stream are not in the records: the error counts as the last event"
)
UNKNOWN = Rule(
    "unknown",
    "requests that loadgen abandoned are left out: it is unknown how they would have ended",
)
