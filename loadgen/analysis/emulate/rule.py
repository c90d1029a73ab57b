"""Rules: what a tool does otherwise than loadgen, each a sentence, and a step that its arithmetic can leave out."""

from collections.abc import Collection, Container
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """One step of a tool's arithmetic, of which loadgen has another.

    Attributes:
        name: For JSON.
        says: What the tool does, and what loadgen does instead.
    """

    name: str
    says: str


Rules = Container[Rule]


class Asked:
    """Rules that hold, and which of all rules it was asked about: on the others nothing can have depended."""

    def __init__(self, holding: Collection[Rule]) -> None:
        self._holding = holding
        self.answers: dict[Rule, bool] = {}

    def __contains__(self, rule: object) -> bool:
        assert isinstance(rule, Rule)
        return self.answers.setdefault(rule, rule in self._holding)


FROM_SENT = Rule("from_sent", "its clock starts when it sends the request, loadgen's when the request was due")
CONNECTING = Rule(
    "connecting",
    "its clock starts before a connection is opened; loadgen tells connecting apart (where the connection was open "
    "beforehand, what opening one would have taken is not known and not counted here)",
)
MEAN_ITL = Rule("mean_itl", "ITL is the mean gap of each request, by its usage; loadgen's are the gaps that were seen")
N_MINUS_1 = Rule(
    "n_minus_1", "TPOT divides by output tokens - 1; loadgen leaves out all tokens that the first event brought"
)
EVENT_IS_TOKEN = Rule("event_is_token", "an event counts as one token; loadgen counts the tokens that it brought")
WHOLE_SECONDS = Rule(
    "whole_seconds",
    "its peak counts in whole seconds after the first send; loadgen takes the best second wherever it begins",
)
TOUCHED_SECONDS = Rule(
    "touched_seconds",
    "a request is concurrent with all that share a whole second with it; loadgen counts those in flight at one moment",
)
FORGIVING = Rule(
    "forgiving",
    "a stream that ends without a finish reason, or brings an error, is a success; to loadgen it failed",
)
PLANNED_INPUT = Rule("planned_input", "input tokens are those of the data set; loadgen takes the server's count")
ZERO = Rule("zero", "what could not be measured counts as 0; to loadgen it is n/a, and in no mean or percentile")

# Of a value that could not be computed, or of what stands beside it.
RETOKENIZED = Rule("retokenized", "n/a: it would have tokenized the text again, which is not in the records")
UNPLANNED = Rule("unplanned", "n/a: nobody knows how many tokens some prompts have")
DIGITS = Rule("digits", "loadgen's percentiles come from a histogram of three significant digits")
ERRED = Rule("erred", "what came after an error inside a stream is not in the records: it is taken for the last event")
UNKNOWN = Rule(
    "unknown",
    "requests that loadgen gave up are left out: nobody knows how they would have ended for one that waits on",
)
