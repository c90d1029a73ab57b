"""Kinds of findings: what each rule is called for a reader, and what a finding of it means."""

from dataclasses import dataclass

DOCS = "docs/audit.md"


@dataclass(frozen=True, slots=True)
class Kind:
    """What the findings of one rule have in common.

    Attributes:
        title: Its name in plain words.
        meaning: What a finding of this kind means for a reader of the page.
        section: The section of docs/audit.md that explains it; empty: the name of the rule.
        claim: The sentence of a finding with a right value; `{says}` is what is printed.
    """

    title: str
    meaning: str
    section: str = ""
    claim: str = "{says}, should be {should_be}"


_HAVE = "{says} should have {should_be}"
# By the name of the rule, in the order of how much of a page a finding takes away.
KINDS = {
    "copied": Kind("copied result", "Two files print the same run. At most one measured it."),
    "verdict": Kind("doubtful run", "The tool that made this result does not trust it."),
    "recommended": Kind(
        "the recommended command was never benchmarked",
        "The recommended command is not the one that has the numbers printed with it, or not the "
        "best one.",
    ),
    "shell": Kind(
        "broken command", "Bash reads the command differently: some words never reach the program."
    ),
    "model": Kind("other model", "The text and the commands are about different models."),
    "hardware": Kind(
        "other hardware",
        "The page names other devices, or fewer, than its commands use.",
        "hardware-hardware-count",
    ),
    "summary-line": Kind(
        "wrong sentence about a comparison",
        "The sentence does not follow from the results that it compares.",
        "result-line-summary-line",
    ),
    "success-rate": Kind("wrong success rate", "The rate does not follow from the requests."),
    "failures": Kind(
        "failed requests", "Some requests failed, so this run did less work than the others."
    ),
    "duplicate": Kind(
        "one run under two names",
        "The same run is published as two configurations.",
        "duplicate-repeat",
    ),
    "extrapolated": Kind(
        "throughput not measured", "The number was multiplied; so many servers were never run."
    ),
    "percent": Kind("wrong change in percent", "The change does not follow from the two numbers."),
    "percent-of-rates": Kind(
        "change computed from wrong rates",
        "The two throughputs do not follow from their tokens and durations, and so neither does "
        "the change.",
    ),
    "gain": Kind("wrong gain", "The gain does not follow from the results of the stage."),
    "result-line": Kind(
        "wrong result line",
        "The line does not follow from the results that it lists.",
        "result-line-summary-line",
    ),
    "cell": Kind("wrong table cell", "The cell differs from the result that it is taken from."),
    "latency-cell": Kind(
        "impossible latency in a table", "So many requests do not fit into the run at this latency."
    ),
    "baseline": Kind(
        "unclear baseline", "The numbers of the baseline come from different or unknown commands."
    ),
    "base": Kind(
        "several changes at once",
        "The candidate is not the best configuration so far with one change.",
    ),
    "label": Kind("change missing in the title", "The candidate changes more than its title says."),
    "idle-option": Kind("option without effect", "The option cannot have caused the gain."),
    "row-without-stage": Kind(
        "row without a stage",
        "The summary lists something that the page does not show.",
        "row-without-stage-stage-number",
    ),
    "throughput": Kind("wrong throughput", "The rate does not follow from tokens and duration."),
    "tpot": Kind(
        "wrong TPOT", "TPOT does not follow from E2EL, TTFT and the tokens of a response."
    ),
    "itl-zero": Kind("ITL of 0", "The tool saw no time between tokens.", "itl-zero-itl"),
    "itl": Kind(
        "ITL too small", "The tool did not see most tokens arrive one by one.", "itl-zero-itl"
    ),
    "itl-coalesced": Kind("tokens arrived in bundles", "The median gap says nothing about tokens."),
    "latency-zero": Kind("latency of 0", "A latency of 0 cannot be measured."),
    "latency-bounds": Kind("impossible latency", "A part cannot take longer than the whole."),
    "percentile-order": Kind(
        "percentiles out of order", "A higher percentile cannot be below a lower one."
    ),
    "in-flight": Kind(
        "too many requests in flight",
        "Rate x latency gives more requests in flight than the run allowed (Little's law).",
    ),
    "peak-throughput": Kind("impossible peak throughput", "The peak second has too many tokens."),
    "rate-limited": Kind(
        "throughput set by the client",
        "The server answered all that was sent, so the throughput shows the request rate.",
    ),
    "repeat": Kind(
        "same command, other result", "Nothing printed explains the difference.", "duplicate-repeat"
    ),
    "noise": Kind("gain within the noise", "Runs of the same configuration differ as much."),
    "hidden-loss": Kind(
        "loss not mentioned",
        "A latency became worse by more than the printed gain, and the page does not say so.",
        claim="{says}: a change of {should_be} that the page does not print",
    ),
    "reference": Kind(
        "gain over a weak rival", "The gain is not over the best configuration so far."
    ),
    "tie": Kind("tie called faster", "Both results are the same."),
    "unsteady": Kind(
        "no steady state", "The server fell behind, so the result depends on the length of the run."
    ),
    "one-sided": Kind("unequal settings", "Only one of the compared engines has this setting."),
    "untried": Kind("never tried", "The page shows neither a command nor a result of it."),
    "incumbent": Kind(
        "winner not tuned further", "Later stages tune another engine than the one that won."
    ),
    "work": Kind("unequal work", "The runs did not produce the same number of tokens."),
    "announced": Kind(
        "workload without a result",
        "The page announces this workload and prints no result of it.",
        "unreported-announced",
        _HAVE,
    ),
    "unreported": Kind(
        "result in no table",
        "The page measured this workload, and no table shows it.",
        "unreported-announced",
        _HAVE,
    ),
    "advice": Kind("advice without a measurement", "The page did not run what it recommends."),
    "client": Kind(
        "client and server do not match", "As printed, the client does not reach this server."
    ),
    "script": Kind(
        "script and results do not match", "The results come from other values than the script has."
    ),
    "reprinted": Kind("one run printed twice", "The second result is no repetition."),
    "stage-number": Kind(
        "missing stage", "The numbers of the stages have a gap.", "row-without-stage-stage-number"
    ),
    "hardware-count": Kind(
        "number of devices unknown",
        "Throughput per device cannot be computed.",
        "hardware-hardware-count",
        "{says}, without {should_be}",
    ),
    "itl-diluted": Kind(
        "ITL counts events without a token",
        "This ITL cannot be compared with that of a tool that counts tokens only.",
        "itl-diluted-itl-bundled",
    ),
    "itl-bundled": Kind(
        "several tokens in one event",
        "ITL is the time between events, not between tokens.",
        "itl-diluted-itl-bundled",
    ),
    "itl-stalled": Kind("server stood still", "A few long gaps hold most of the time."),
    "retokenized": Kind(
        "tokens that no text has", "The tool counted other tokens than the text of the replies has."
    ),
    "peak-concurrency": Kind(
        "more requests than allowed", "More requests were counted in flight than the cap allows."
    ),
}
ORDER = tuple(KINDS)


def link(rule: str) -> str:
    """Return the section of the documentation that explains a rule."""
    return f"{DOCS}#{KINDS[rule].section or rule}"
