"""Rates: throughput, peaks and requests in flight of a result, against its counts and times."""

import math

from loadgen.lab.audit.files import RATE_ERROR
from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.number import UNKNOWN, Number, change, off, plain
from loadgen.lab.audit.published import Published

_IDENTITY = 0.001  # how far the mean of a mean may be off where a tool rounds it
MAX_UNSEEN = 0.25  # relative: marks and thoughts that are left out of a text are fewer
PARTS = {
    "requests_per_s": ("requests", "req/s", ("ok",)),
    "input_per_s": ("input", "tok/s", ("input_tokens",)),
    "output_per_s": ("output", "tok/s", ("output_tokens",)),
    "total_per_s": ("total", "tok/s", ("input_tokens", "output_tokens")),
}


def peak_throughput(result: Published) -> Findings:
    """The peak second has no more tokens than the run, and no fewer than its share."""
    peak, tokens, duration = (
        result[name] for name in ("peak_output_per_s", "output_tokens", "duration_s")
    )
    if not peak or not tokens / duration:
        return
    # Some tools divide by the time of a shorter run.
    whole = tokens if duration.low >= 1 else tokens / duration
    seconds = math.ceil(duration.high)
    share = tokens / seconds
    reply = result.reply or 0
    # Requests that take a second or more: within one run those at its beginning, and those that
    # take their places.
    requests = result["peak_in_flight"] * 2 if result["mean_e2el_ms"].value >= 1000 else UNKNOWN
    if peak.above(whole):
        why = f"more tokens in one second than the {tokens} of the whole run"
        why += (
            f", whose {duration} s may be the divisor"
            if duration.low < 1
            else ": the divisor is not one second"
        )
        should_be = f"at most {whole}"
    elif reply and peak.above(most := requests.value * reply):
        why = f"no more than {requests} requests run within one second, of {reply} tokens each"
        should_be = f"at most {plain(most)}"
    elif share.above(peak):
        why = f"{tokens} tokens in {duration} s fill {seconds} seconds: one has {share} or more"
        should_be = f"at least {share}"
    else:
        return
    place = result.where("peak_output_per_s")
    says = f"peak {peak} tok/s"
    yield Finding(
        place, "peak-throughput", says, f"{should_be} tok/s", why, cause="peak", weight=peak.value
    )


def peak_concurrency(result: Published) -> Findings:
    """No more in flight than a cap lets through, nor than there were requests."""
    peak = result["peak_in_flight"]
    cap = result["cap"]
    sent = result["ok"] + result["failed"]
    says = f"{peak} concurrent requests"
    place = result.where("peak_in_flight")
    if peak.above(cap):
        why = (
            f"no more than {cap} may be in flight at once: requests that ran within the same "
            "second were counted"
        )
        yield Finding(
            place,
            "peak-concurrency",
            says,
            f"at most {cap}",
            why,
            True,
            "same second",
            off(peak, cap),
        )
    elif peak.above(sent):
        yield Finding(
            place, "peak-concurrency", says, f"at most {sent}", f"there were {sent} requests"
        )


def in_flight(result: Published) -> Findings:
    """Little's law: requests in flight are the rate of requests times how long each takes."""
    rate = result["ok"] / result["duration_s"] or result["requests_per_s"]
    e2el = result["mean_e2el_ms"]
    limit = result["cap"] or result["peak_in_flight"]
    if not e2el:
        yield from _from_parts(result, rate, limit)
        return
    computed = rate * e2el / 1000
    mean = result["mean_in_flight"]
    why = f"{rate} req/s x {e2el / 1000} s = {computed} in flight on average (Little)"
    if computed.above(limit):
        should_be = f"at most {plain(1000 * limit.value / rate.value)} ms"
        yield Finding(
            result.where("mean_e2el_ms"), "in-flight", f"mean E2EL {e2el} ms", should_be, why
        )
    if mean.differs(computed) and abs(mean.value - computed.value) > _IDENTITY * computed.value:
        says = f"{mean} in flight on average"
        yield Finding(result.where("mean_in_flight"), "in-flight", says, str(computed), why)


def _from_parts(result: Published, rate: Number, limit: Number) -> Findings:
    """Where E2EL was not published: TTFT and TPOT times the gaps of a reply of mean length."""
    ttft = result["mean_ttft_ms"]
    tpot = result["mean_tpot_ms"]
    gaps = result.mean_reply - 1
    in_flight = rate * (ttft + tpot * gaps) / 1000
    # A mean over replies of many lengths is that of the short ones.
    if not result.reply or not in_flight.above(limit):
        return
    sum_of = (
        f"{rate} req/s x ({ttft} + {tpot} x {gaps}) ms = {in_flight} in flight on average (Little)"
    )
    says = f"mean TPOT {tpot} ms"
    why = f"{sum_of}, and no more than {limit} were"
    yield Finding(result.where("mean_tpot_ms"), "in-flight", says, "", why)


def retokenized(result: Published) -> Findings:
    """The text of the replies has the tokens that were counted."""
    tokens, text = result["output_tokens"], result["retokenized"]
    if off(text, tokens) > MAX_UNSEEN:
        why = f"{tokens} were counted, and rates are of these: who reads the text sees others"
        place = result.where("retokenized")
        yield Finding(place, "retokenized", f"{text} tokens in the text", "", why, True, "text")


def verdict(result: Published) -> Findings:
    """A run that its own tool does not believe is no result."""
    if result.verdict in ("INVALID", "SUSPECT"):
        why = "its own checks failed: `loadgen report` lists them"
        yield Finding(
            result.place, "verdict", result.verdict, "VALID", why, note=result.verdict == "SUSPECT"
        )


def rates(result: Published) -> Findings:
    """A throughput is what was counted by the duration."""
    duration = result["duration_s"]
    for name, (title, unit, _) in PARTS.items():
        count = counted(result, name)
        printed = result[name]
        expected = count / duration
        if printed.differs(expected) and expected.value:
            off = printed.value / expected.value
            # guidellm's rates are those of its events, from the first to the last, and not of the
            # run.
            is_near = result.over_guidellm and abs(off - 1) <= RATE_ERROR
            why = f"{count} / {duration} s = {expected}; printed is {change(off)} off"
            says = f"{title} {printed} {unit}"
            should_be = f"{expected} {unit}"
            yield Finding(
                result.where(name),
                "throughput",
                says,
                should_be,
                why,
                is_near,
                "rates",
                abs(off - 1),
            )


def counted(result: Published, name: str) -> Number:
    """The requests or tokens that a throughput counts."""
    return sum((result[part] for part in PARTS[name][2]), Number.exact(0))
