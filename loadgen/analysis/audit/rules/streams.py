"""Streams: whether TPOT and ITL can be the times between tokens that they are called."""

from collections.abc import Iterator

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.number import Number, off, plain
from loadgen.analysis.audit.published import Published

MAX_END_GAP = 0.02  # relative: where a reply ends, at its last token or at the end of its stream, differs by less
MAX_ITL_FACTOR = 2  # times: events without tokens, as some servers send at the end, make ITL shorter by less
MIN_STALL_FACTOR = 1.25  # times P99: a hundredth of the gaps then holds a fifth of the time
FIRST_ONLY, WITH_FIRST = "first only", "with first"  # causes of a wrong TPOT
MIN_COALESCED_FACTOR = 100  # times: a median gap so far below the mean one is no gap between tokens
MAX_DILUTION = 0.05  # relative: below it, events without tokens or with several leave ITL comparable


def tpot(result: Published) -> Iterator[Finding]:
    """TPOT is what E2EL leaves after TTFT, by the tokens after the first; nothing else has room in a reply."""
    printed, ttft, reply = result.get("mean_tpot_ms"), result.get("mean_ttft_ms"), result.reply
    if printed is None or ttft is None:
        return
    expected, reason = _expected(result)
    copied = reply and _is_ttft_per_token(result, reply)
    if expected is None:
        if copied == 2:  # without E2EL only that both agree is no chance
            why = (
                f"it is TTFT by output tokens, {ttft} / {reply}, in mean and median: no token after the first was seen"
            )
            yield _tpot(result, printed, "", why, FIRST_ONLY)
        elif whole := _with_first(result, printed):
            why = f"it is E2EL by output tokens, {whole}: it includes the first token, which its title leaves out"
            yield _tpot(result, printed, "", why, WITH_FIRST)
        return
    if _is_near(printed, expected):
        return
    why, cause = f"{reason} = {expected} ms from a token to the next", "other"
    if copied:
        whose = "mean" if _per_token(result, "mean", reply or 1) else "median"
        number, of = result.numbers[f"{whose}_tpot_ms"], result.numbers[f"{whose}_ttft_ms"]
        why += f"; the {whose}, {number}, is TTFT by output tokens, {of} / {reply}: no token after the first was seen"
        cause = FIRST_ONLY
    elif whole := _with_first(result, printed):
        why += f"; it is E2EL by output tokens, {whole}: it includes the first token, which its title leaves out"
        cause = WITH_FIRST
    yield _tpot(result, printed, f"{expected} ms", why, cause, off(printed, expected))


def _tpot(result: Published, printed: Number, should_be: str, why: str, cause: str, weight: float = 0) -> Finding:
    says = f"mean TPOT {printed} ms"
    return Finding(result.where("mean_tpot_ms"), "tpot", says, should_be, why, cause=cause, weight=weight)


def _with_first(result: Published, printed: Number) -> str:
    """E2EL by output tokens as text, where TPOT is that and differs from what it should be."""
    known, decode = result.all("mean_e2el_ms", "output_tokens", "ok"), result.decode_ms()
    if known is None or decode is None or known[1].low <= 0 or known[2].low <= 0 or result.tpot_with_first:
        return ""
    tokens = known[1] / known[2]
    is_whole = printed.agrees(known[0] / tokens) and not printed.agrees(decode)
    return f"{known[0]} / {tokens}" if is_whole else ""


def itl(result: Published) -> Iterator[Finding]:
    """ITL is the time between tokens: as long as decoding took for each, and for most of them near its mean."""
    mean, median = result.get("mean_itl_ms"), result.get("median_itl_ms")
    counts = result.all("output_tokens", "ok")
    if mean is None or (counts is not None and counts[0].value < 2 * max(counts[1].value, 1)):
        return  # no reply has two tokens
    decode = result.decode_ms()
    said, where = f"mean ITL {mean} ms", result.where("mean_itl_ms")
    if mean.value <= 0:
        each = f" of a reply of {plain(counts[0].value / counts[1].value)}" if counts and counts[1].value else ""
        why = f"no gap was seen between the tokens{each}"
        yield Finding(where, "itl-zero", said, f"{decode} ms" if decode else "n/a", why, cause="unseen")
    elif decode is not None and decode.low > MAX_ITL_FACTOR * mean.high:
        why = f"(E2EL - TTFT) / (tokens - 1) = {decode} ms from a token to the next: most tokens were not seen"
        yield Finding(where, "itl", said, f"{decode} ms", why, cause="unseen", weight=decode.value / mean.value)
    elif median is not None and median.high * MIN_COALESCED_FACTOR < mean.low:
        why = f"half of the gaps are below a {MIN_COALESCED_FACTOR}th of the mean, {mean} ms: events came in bundles"
        yield Finding(result.where("median_itl_ms"), "itl-coalesced", f"median ITL {median} ms", "", why)
    else:
        yield from _diluted(result, mean)
        yield from _stalled(result, mean)


def _stalled(result: Published, mean: Number) -> Iterator[Finding]:
    """A mean gap above the 99th percentile: a hundredth of the gaps holds most of the time."""
    high = result.get("p99_itl_ms")
    if high is not None and high.value > 0 and mean.above(high * MIN_STALL_FACTOR):
        share = 100 * (1 - high.value / mean.value)
        why = f"P99 ITL is {high} ms: 1 % of the gaps hold {share:.0f} % of the time or more"
        says, place = f"mean ITL {mean} ms", result.where("mean_itl_ms")
        yield Finding(place, "itl-stalled", says, "", why, True, "stalls", mean.value / high.value)


def _diluted(result: Published, mean: Number) -> Iterator[Finding]:
    """Where all replies are as long, TPOT and ITL are of the same time: their ratio counts the gaps."""
    printed, reply = result.get("mean_tpot_ms"), result.reply
    if printed is None or reply is None or printed.value <= 0 or result.tpot_with_first:
        return
    expected, _ = _expected(result)
    if expected is not None and not _is_near(printed, expected):
        return
    between, seen = reply - 1, (reply - 1) * printed.value / mean.value
    if abs(seen - round(seen)) > MAX_DILUTION * between or abs(seen / between - 1) < MAX_DILUTION:
        return
    many = round(seen)
    says, ratio = f"mean ITL {mean} ms", f"ITL / TPOT = {mean} / {printed} = {between}/{many}"
    if many > between:
        why = f"{ratio}: {many} gaps in a reply of {reply} tokens, which has {between}: events without a token count"
        place = result.where("mean_itl_ms")
        yield Finding(place, "itl-diluted", says, f"{printed} ms", why, cause="diluted", weight=many / between)
    else:
        why = f"{ratio}: {many} gaps in a reply of {reply} tokens, which has {between}: some events bring several"
        yield Finding(result.where("mean_itl_ms"), "itl-bundled", says, "", why, True, "bundled")


def _expected(result: Published) -> tuple[Number | None, str]:
    """What mean TPOT follows from E2EL, and how; None where it does not: replies of many lengths, no E2EL."""
    if result.tpot_with_first:
        known = result.all("mean_e2el_ms", "output_tokens", "ok")
        if known is None or known[1].low <= 0 or known[2].low <= 0:
            return None, ""
        return known[0] / (known[1] / known[2]), f"E2EL / tokens = {known[0]} / {known[1] / known[2]}"
    if result.reply is None:
        return None, ""
    e2el, ttft = result.get("mean_e2el_ms"), result.get("mean_ttft_ms")
    return result.decode_ms(), f"(E2EL - TTFT) / (tokens - 1) = ({e2el} - {ttft}) / {result.reply - 1}"


def _is_ttft_per_token(result: Published, reply: int) -> int:
    """Of mean and median, for how many TPOT is TTFT by the tokens of a reply."""
    return sum(_per_token(result, statistic, reply) for statistic in ("mean", "median"))


def _per_token(result: Published, statistic: str, reply: int) -> bool:
    known = result.all(f"{statistic}_tpot_ms", f"{statistic}_ttft_ms")
    return known is not None and known[0].value > 0 and known[0].agrees(known[1] / reply)


def _is_near(printed: Number, expected: Number) -> bool:
    return printed.agrees(expected) or abs(printed.value - expected.value) <= MAX_END_GAP * abs(expected.value)
