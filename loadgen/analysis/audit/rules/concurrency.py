"""Concurrency: peaks that cannot have been, and requests in flight that the numbers need and nobody sent."""

import math
from collections.abc import Iterator

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.number import Number, off, plain
from loadgen.analysis.audit.published import Published

_IDENTITY = 0.001  # how far the mean of a mean may be off where a tool rounds it


def peak_throughput(result: Published) -> Iterator[Finding]:
    """A second of a run has no more tokens than the run, and one of its seconds no fewer than its share."""
    known = result.all("peak_output_per_s", "output_tokens", "duration_s")
    if known is None or known[2].low <= 0:
        return
    peak, tokens, duration = known
    whole = tokens if duration.low >= 1 else tokens / duration  # some tools divide by the time of a shorter run
    seconds = math.ceil(duration.high)
    running, e2el, reply = result.get("peak_in_flight"), result.get("mean_e2el_ms"), result.reply
    # Requests that take a second or more: within one run those at its beginning, and those that take their places.
    most = 2 * running.value * reply if running and reply and e2el and e2el.value >= 1000 else math.inf
    if peak.above(whole):
        why = f"more tokens in one second than the {tokens} of the whole run: the divisor is not one second"
        if duration.low < 1:
            why = f"more tokens in one second than the {tokens} of the whole run, whose {duration} s may be the divisor"
        yield _peak(result, peak, f"at most {whole}", why)
    elif peak.above(most):
        why = f"no more than {plain(most / (reply or 1))} requests run within one second, of {reply} tokens each"
        yield _peak(result, peak, f"at most {plain(most)}", why)
    elif (tokens / seconds).above(peak):
        why = f"{tokens} tokens in {duration} s fill {seconds} seconds: one has {plain(tokens.value / seconds)} or more"
        yield _peak(result, peak, f"at least {plain(tokens.value / seconds)}", why)


def peak_concurrency(result: Published) -> Iterator[Finding]:
    """No more in flight than a cap lets through, nor than there were requests."""
    peak, cap, sent = result.get("peak_in_flight"), result.get("cap"), result.all("ok", "failed")
    if peak is None:
        return
    if cap is not None and peak.above(cap):
        why = f"no more than {cap} may be in flight at once: requests that ran within the same second were counted"
        says, place = f"{peak} concurrent requests", result.where("peak_in_flight")
        yield Finding(place, "peak-concurrency", says, f"at most {cap}", why, True, "same second", off(peak, cap))
    elif sent is not None and peak.above(sent[0] + sent[1]):
        why = f"there were {sent[0] + sent[1]} requests"
        yield _in_flight(result, "peak_in_flight", peak, f"at most {sent[0] + sent[1]}", why)


def in_flight(result: Published) -> Iterator[Finding]:
    """Little's law: requests in flight, on average, are the rate of requests times how long each takes."""
    counts = result.all("ok", "duration_s")
    limit = result.get("cap") or result.get("peak_in_flight")
    if counts is None or counts[1].low <= 0:
        return
    ok, duration = counts
    rate = ok / duration
    if e2el := result.get("mean_e2el_ms"):
        found = rate * e2el / 1000
        if limit is not None and found.above(limit):
            why = f"{plain(rate.value)} req/s x {plain(e2el.value / 1000)} s = {found} in flight on average (Little)"
            yield _in_flight(result, "mean_e2el_ms", e2el, f"at most {plain(1000 * limit.value / rate.value)} ms", why)
        mean = result.get("mean_in_flight")
        if mean is not None and abs(mean.value - found.value) > _IDENTITY * found.value and not mean.agrees(found):
            why = f"{plain(rate.value)} req/s x {plain(e2el.value / 1000)} s = {found} in flight on average (Little)"
            yield _in_flight(result, "mean_in_flight", mean, str(found), why)
        return
    yield from _from_parts(result, rate, limit)


def _from_parts(result: Published, rate: Number, limit: Number | None) -> Iterator[Finding]:
    """Where E2EL was not published: TTFT and TPOT times the gaps of a reply of mean length."""
    known = result.all("mean_ttft_ms", "mean_tpot_ms", "output_tokens", "ok")
    if known is None or limit is None or known[3].low <= 0:
        return
    ttft, tpot, tokens, ok = known
    gaps = tokens / ok - 1
    found = rate * (ttft + tpot * gaps) / 1000
    if gaps.low <= 0 or not found.above(limit):
        return
    sum_of = f"{plain(rate.value)} req/s x ({ttft} + {tpot} x {gaps}) ms = {found} in flight on average (Little)"
    says = f"mean TPOT {tpot} ms"
    if result.reply:
        why = f"{sum_of}, and no more than {limit} were"
        yield Finding(result.where("mean_tpot_ms"), "in-flight", says, "", why)
    else:
        why = f"{sum_of} of {limit}: a mean over replies is dominated by short replies and does not match a mean length"
        place = result.where("mean_tpot_ms")
        yield Finding(place, "in-flight", says, "", why, True, "lengths", off(found, limit))


def _peak(result: Published, peak: Number, should_be: str, why: str) -> Finding:
    place, says = result.where("peak_output_per_s"), f"peak {peak} tok/s"
    return Finding(place, "peak-throughput", says, f"{should_be} tok/s", why, cause="peak", weight=peak.value)


def _in_flight(result: Published, name: str, number: Number, should_be: str, why: str) -> Finding:
    rule, says = {
        "peak_in_flight": ("peak-concurrency", f"{number} concurrent requests"),
        "mean_in_flight": ("in-flight", f"{number} in flight on average"),
        "mean_e2el_ms": ("in-flight", f"mean E2EL {number} ms"),
    }[name]
    return Finding(result.where(name), rule, says, should_be, why)
