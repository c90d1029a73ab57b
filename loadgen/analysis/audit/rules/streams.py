"""Streams: whether TPOT and ITL can be the times between tokens that they are called."""

from collections.abc import Iterator

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.number import Number, plain
from loadgen.analysis.audit.published import Published

SAME = 0.02  # relative: where a reply ends, at its last token or at the end of its stream, differs by less
FAR = 2  # times: events without tokens, as some servers send at the end, make ITL shorter by less
COALESCED = 100  # times: a median gap so far below the mean one is no gap between tokens
DILUTED = 0.05  # relative: below it, events without tokens or with several leave ITL comparable


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
            yield Finding(result.where("mean_tpot_ms"), "tpot", f"mean TPOT {printed} ms", "", why)
        return
    if _is_near(printed, expected):
        return
    why = f"{reason} = {expected} ms from a token to the next"
    if copied:
        whose = "mean" if _per_token(result, "mean", reply or 1) else "median"
        number, of = result.numbers[f"{whose}_tpot_ms"], result.numbers[f"{whose}_ttft_ms"]
        why += f"; the {whose}, {number}, is TTFT by output tokens, {of} / {reply}: no token after the first was seen"
    yield Finding(result.where("mean_tpot_ms"), "tpot", f"mean TPOT {printed} ms", f"{expected} ms", why)


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
        yield Finding(where, "itl-zero", said, f"{decode} ms" if decode else "n/a", why)
    elif decode is not None and decode.low > FAR * mean.high:
        why = f"(E2EL - TTFT) / (tokens - 1) = {decode} ms from a token to the next: most tokens were not seen"
        yield Finding(where, "itl", said, f"{decode} ms", why)
    elif median is not None and median.high * COALESCED < mean.low:
        why = f"half of the gaps are below a {COALESCED}th of the mean, {mean} ms: events came in bundles"
        yield Finding(result.where("median_itl_ms"), "itl-coalesced", f"median ITL {median} ms", "", why)
    else:
        yield from _diluted(result, mean)


def _diluted(result: Published, mean: Number) -> Iterator[Finding]:
    """Where all replies are as long, TPOT and ITL are of the same time: their ratio counts the gaps."""
    printed, reply = result.get("mean_tpot_ms"), result.reply
    if printed is None or reply is None or printed.value <= 0 or result.tpot_with_first:
        return
    expected, _ = _expected(result)
    if expected is not None and not _is_near(printed, expected):
        return
    between, seen = reply - 1, (reply - 1) * printed.value / mean.value
    if abs(seen - round(seen)) > DILUTED * between or abs(seen / between - 1) < DILUTED:
        return
    many = round(seen)
    says, ratio = f"mean ITL {mean} ms", f"ITL / TPOT = {mean} / {printed} = {between}/{many}"
    if many > between:
        why = f"{ratio}: {many} gaps in a reply of {reply} tokens, which has {between}: events without a token count"
        yield Finding(result.where("mean_itl_ms"), "itl-diluted", says, f"{printed} ms", why)
    else:
        why = f"{ratio}: {many} gaps in a reply of {reply} tokens, which has {between}: some events bring several"
        yield Finding(result.where("mean_itl_ms"), "itl-diluted", says, "", why, note=True)


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
    return printed.agrees(expected) or abs(printed.value - expected.value) <= SAME * abs(expected.value)
