"""Streams: latencies that cannot have been, and whether TPOT and ITL are times between tokens."""

from itertools import pairwise

from loadgen.config.output import METRICS
from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.number import UNKNOWN, Number, off
from loadgen.lab.audit.published import Published, title

STATISTICS = ("mean", "median", "p50", "p75", "p90", "p95", "p99", "p99.9")
ASCENDING = STATISTICS[1:]
# Causes of a wrong TPOT.
FIRST_ONLY = "first only"
WITH_FIRST = "with first"
# relative: where a reply ends, at its last token or at the end of its stream, differs by less
MAX_END_GAP = 0.02
# Times: events without tokens, as some servers send at the end, make ITL shorter by less.
MAX_ITL_FACTOR = 2
MIN_STALL_FACTOR = 1.25  # times P99: a hundredth of the gaps then holds a fifth of the time
MIN_COALESCED_FACTOR = 100  # times: a median gap so far below the mean one is no gap between tokens
# Relative: below it, events without tokens or with several leave ITL comparable.
MAX_DILUTION = 0.05


def latencies(result: Published) -> Findings:
    """What must hold of the latencies of any run in which a request succeeded."""
    if not result["ok"].value:
        return
    for metric in ("ttft", "e2el"):
        for statistic in STATISTICS:
            name = f"{statistic}_{metric}_ms"
            if result[name].value <= 0:
                why = "an answer takes time: the stamp was taken before the first token"
                says = f"{title(name)} {result[name]} ms"
                yield Finding(
                    result.where(name), "latency-zero", says, "above 0", why, cause=metric
                )
    for metric in METRICS:
        names = [name for s in ASCENDING if (name := f"{s}_{metric}_ms") in result.numbers]
        for lower, higher in pairwise(names):
            below = result[lower]
            above = result[higher]
            if below.above(above):
                says = f"{title(higher)} {above} ms"
                at_least = f"at least {below} ms"
                why = f"no percentile is below a lower one, and {title(lower)} is {below} ms"
                yield Finding(result.where(higher), "percentile-order", says, at_least, why)
    whole_run = result["duration_s"] * 1000
    for statistic in STATISTICS:
        first = f"{statistic}_ttft_ms"
        last = f"{statistic}_e2el_ms"
        ttft = result[first]
        e2el = result[last]
        if ttft.above(e2el):
            why = f"each first token comes before the last one, and {title(last)} is {e2el} ms"
            yield _bound(result, first, e2el, why)
        if (e2el or ttft).above(whole_run):
            why = f"the whole run took {result['duration_s']} s"
            yield _bound(result, last if e2el else first, whole_run, why)


def _bound(result: Published, name: str, most: Number, why: str) -> Finding:
    return Finding(
        result.where(name),
        "latency-bounds",
        f"{title(name)} {result[name]} ms",
        f"at most {most} ms",
        why,
    )


def tpot(result: Published) -> Findings:
    """TPOT is what E2EL leaves after TTFT, by the tokens after the first."""
    printed = result["mean_tpot_ms"]
    ttft = result["mean_ttft_ms"]
    reply = result.reply
    expected, reason = _expected(result)
    if not printed or not ttft or _is_near(printed, expected):
        return
    copied = []
    for statistic in ("mean", "median"):
        tpot_ms = result[f"{statistic}_tpot_ms"]
        if reply and tpot_ms.value > 0 and tpot_ms.agrees(result[f"{statistic}_ttft_ms"] / reply):
            copied.append(statistic)
    e2el = result["mean_e2el_ms"]
    tokens = result.mean_reply
    # Of replies of many lengths, a mean of TPOT is near this by chance, but not guidellm's.
    is_whole = bool(reply or result.over_guidellm) and printed.agrees(e2el / tokens)
    parts = [f"{reason} = {expected} ms from a token to the next"] if expected else []
    cause = "other"
    if copied and (expected or len(copied) == 2):  # without E2EL only that both agree is no chance
        number, of = (result[f"{copied[0]}_{metric}_ms"] for metric in ("tpot", "ttft"))
        whose, both = (
            (f"the {copied[0]}, {number},", "") if expected else ("it", ", in mean and median")
        )
        parts.append(
            f"{whose} is TTFT by output tokens, {of} / {reply}{both}: no token after the first "
            "was seen"
        )
        cause = FIRST_ONLY
    elif is_whole and not result.tpot_with_first:
        why = "it includes the first token, which its title leaves out"
        parts.append(f"it is E2EL by output tokens, {e2el} / {tokens}: {why}")
        cause = WITH_FIRST
    if parts:
        says = f"mean TPOT {printed} ms"
        should_be = f"{expected} ms" if expected else ""
        weight = off(printed, expected) if expected else 0.0
        place = result.where("mean_tpot_ms")
        yield Finding(place, "tpot", says, should_be, "; ".join(parts), cause=cause, weight=weight)


def itl(result: Published) -> Findings:
    """ITL is the time between tokens, as long as decoding took for each."""
    mean = result["mean_itl_ms"]
    median = result["median_itl_ms"]
    if not mean or result["output_tokens"].value < 2 * max(result["ok"].value, 1):
        return  # no reply has two tokens
    decode = result.decode_ms()
    says = f"mean ITL {mean} ms"
    where = result.where("mean_itl_ms")
    if mean.value <= 0:
        reply_text = f" of a reply of {result.mean_reply}" if result.mean_reply else ""
        why = f"no gap was seen between the tokens{reply_text}"
        yield Finding(
            where, "itl-zero", says, f"{decode} ms" if decode else "n/a", why, cause="unseen"
        )
    elif decode.low > MAX_ITL_FACTOR * mean.high:
        why = (
            f"(E2EL - TTFT) / (tokens - 1) = {decode} ms from a token to the next: most tokens "
            "were not seen"
        )
        yield Finding(
            where,
            "itl",
            says,
            f"{decode} ms",
            why,
            cause="unseen",
            weight=decode.value / mean.value,
        )
    elif median.high * MIN_COALESCED_FACTOR < mean.low:
        why = (
            f"half of the gaps are below a {MIN_COALESCED_FACTOR}th of the mean, {mean} ms: "
            "events came in bundles"
        )
        yield Finding(
            result.where("median_itl_ms"), "itl-coalesced", f"median ITL {median} ms", "", why
        )
    else:
        yield from _diluted(result, mean)
        # A mean above the 99th percentile: a hundredth of the gaps holds most of the time.
        high = result["p99_itl_ms"]
        if high.value > 0 and mean.above(high * MIN_STALL_FACTOR):
            share = 100 * (1 - high.value / mean.value)
            why = f"P99 ITL is {high} ms: 1% of the gaps hold {share:.0f}% of the time or more"
            yield Finding(
                where, "itl-stalled", says, "", why, True, "stalls", mean.value / high.value
            )


def _diluted(result: Published, mean: Number) -> Findings:
    """Where all replies are as long, the ratio of TPOT to ITL counts the gaps."""
    printed = result["mean_tpot_ms"]
    reply = result.reply
    expected, _ = _expected(result)
    is_off = bool(expected) and not _is_near(printed, expected)
    if reply is None or not printed.value > 0 or result.tpot_with_first or is_off:
        return
    between = reply - 1
    seen = (reply - 1) * printed.value / mean.value
    if abs(seen - round(seen)) > MAX_DILUTION * between or abs(seen / between - 1) < MAX_DILUTION:
        return
    many = round(seen)
    says = f"mean ITL {mean} ms"
    place = result.where("mean_itl_ms")
    why = (
        f"ITL / TPOT = {mean} / {printed} = {between}/{many}: {many} gaps in a reply of {reply} "
        "tokens, "
    )
    why += (
        f"which has {between}: "
        f"{'events without a token count' if many > between else 'some events bring several'}"
    )
    if many > between:
        yield Finding(
            place, "itl-diluted", says, f"{printed} ms", why, cause="diluted", weight=many / between
        )
    else:
        yield Finding(place, "itl-bundled", says, "", why, True, "bundled")


def _expected(result: Published) -> tuple[Number, str]:
    """What mean TPOT follows from E2EL, and how; unknown for replies of many lengths."""
    e2el = result["mean_e2el_ms"]
    ttft = result["mean_ttft_ms"]
    tokens = result.mean_reply
    if result.tpot_with_first:
        return e2el / tokens, f"E2EL / tokens = {e2el} / {tokens}"
    if result.reply is None:
        return UNKNOWN, ""
    return (
        result.decode_ms(),
        f"(E2EL - TTFT) / (tokens - 1) = ({e2el} - {ttft}) / {result.reply - 1}",
    )


def _is_near(printed: Number, expected: Number) -> bool:
    return printed.agrees(expected) or abs(printed.value - expected.value) <= MAX_END_GAP * abs(
        expected.value
    )
