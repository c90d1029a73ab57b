"""Concurrency: peaks that cannot have been, and requests in flight that the numbers need and nobody sent."""

import math

from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.number import UNKNOWN, Number, off, plain
from loadgen.lab.audit.published import Published

_IDENTITY = 0.001  # how far the mean of a mean may be off where a tool rounds it


def peak_throughput(result: Published) -> Findings:
    """A second of a run has no more tokens than the run, and one of its seconds no fewer than its share."""
    peak, tokens, duration = (result[name] for name in ("peak_output_per_s", "output_tokens", "duration_s"))
    if not peak or not tokens / duration:
        return
    whole = tokens if duration.low >= 1 else tokens / duration  # some tools divide by the time of a shorter run
    seconds = math.ceil(duration.high)
    share, reply = tokens / seconds, result.reply or 0
    # Requests that take a second or more: within one run those at its beginning, and those that take their places.
    requests = result["peak_in_flight"] * 2 if result["mean_e2el_ms"].value >= 1000 else UNKNOWN
    if peak.above(whole):
        why = f"more tokens in one second than the {tokens} of the whole run"
        why += f", whose {duration} s may be the divisor" if duration.low < 1 else ": the divisor is not one second"
        should_be = f"at most {whole}"
    elif reply and peak.above(most := requests.value * reply):
        why = f"no more than {requests} requests run within one second, of {reply} tokens each"
        should_be = f"at most {plain(most)}"
    elif share.above(peak):
        why = f"{tokens} tokens in {duration} s fill {seconds} seconds: one has {share} or more"
        should_be = f"at least {share}"
    else:
        return
    place, says = result.where("peak_output_per_s"), f"peak {peak} tok/s"
    yield Finding(place, "peak-throughput", says, f"{should_be} tok/s", why, cause="peak", weight=peak.value)


def peak_concurrency(result: Published) -> Findings:
    """No more in flight than a cap lets through, nor than there were requests."""
    peak, cap, sent = result["peak_in_flight"], result["cap"], result["ok"] + result["failed"]
    says, place = f"{peak} concurrent requests", result.where("peak_in_flight")
    if peak.above(cap):
        why = f"no more than {cap} may be in flight at once: requests that ran within the same second were counted"
        yield Finding(place, "peak-concurrency", says, f"at most {cap}", why, True, "same second", off(peak, cap))
    elif peak.above(sent):
        yield Finding(place, "peak-concurrency", says, f"at most {sent}", f"there were {sent} requests")


def in_flight(result: Published) -> Findings:
    """Little's law: requests in flight, on average, are the rate of requests times how long each takes."""
    rate, e2el = result["ok"] / result["duration_s"], result["mean_e2el_ms"]
    limit = result["cap"] or result["peak_in_flight"]
    if not e2el:
        yield from _from_parts(result, rate, limit)
        return
    found, mean = rate * e2el / 1000, result["mean_in_flight"]
    why = f"{rate} req/s x {e2el / 1000} s = {found} in flight on average (Little)"
    if found.above(limit):
        should_be = f"at most {plain(1000 * limit.value / rate.value)} ms"
        yield Finding(result.where("mean_e2el_ms"), "in-flight", f"mean E2EL {e2el} ms", should_be, why)
    if mean.differs(found) and abs(mean.value - found.value) > _IDENTITY * found.value:
        says = f"{mean} in flight on average"
        yield Finding(result.where("mean_in_flight"), "in-flight", says, str(found), why)


def _from_parts(result: Published, rate: Number, limit: Number) -> Findings:
    """Where E2EL was not published: TTFT and TPOT times the gaps of a reply of mean length."""
    ttft, tpot, gaps = result["mean_ttft_ms"], result["mean_tpot_ms"], result.mean_reply - 1
    found = rate * (ttft + tpot * gaps) / 1000
    if gaps.low <= 0 or not found.above(limit):
        return
    sum_of = f"{rate} req/s x ({ttft} + {tpot} x {gaps}) ms = {found} in flight on average (Little)"
    says, place = f"mean TPOT {tpot} ms", result.where("mean_tpot_ms")
    if result.reply:
        yield Finding(place, "in-flight", says, "", f"{sum_of}, and no more than {limit} were")
    else:
        why = f"{sum_of} of {limit}: a mean over replies is dominated by short replies and does not match a mean length"
        yield Finding(place, "in-flight", says, "", why, True, "lengths", off(found, limit))
