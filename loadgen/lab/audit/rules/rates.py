"""Rates: what a result says of its throughput, against its own tokens, requests and duration."""

from loadgen.lab.audit.files import RATE_ERROR
from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.number import Number, change
from loadgen.lab.audit.published import Published

PARTS = {
    "requests_per_s": ("requests", "req/s", ("ok",)),
    "input_per_s": ("input", "tok/s", ("input_tokens",)),
    "output_per_s": ("output", "tok/s", ("output_tokens",)),
    "total_per_s": ("total", "tok/s", ("input_tokens", "output_tokens")),
}


def rates(result: Published) -> Findings:
    """A throughput is what was counted by the duration."""
    duration = result["duration_s"]
    for name, (title, unit, _) in PARTS.items():
        count = counted(result, name)
        printed, expected = result[name], count / duration
        if printed.differs(expected) and expected.value:
            off = printed.value / expected.value
            # guidellm's rates are those of its events, from the first to the last, and not of the run.
            is_near = result.over_guidellm and abs(off - 1) <= RATE_ERROR
            why = f"{count} / {duration} s = {expected}; printed is {change(off)} off"
            says, should_be = f"{title} {printed} {unit}", f"{expected} {unit}"
            yield Finding(result.where(name), "throughput", says, should_be, why, is_near, "rates", abs(off - 1))


def counted(result: Published, name: str) -> Number:
    """The requests or tokens that a throughput counts."""
    return sum((result[part] for part in PARTS[name][2]), Number.exact(0))
