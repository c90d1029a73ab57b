"""The kind of a queue: for slots, for the KV cache, or behind other prompts."""

import numpy as np

from loadgen.explanation.gaps import Gaps, Stall
from loadgen.explanation.request_columns import MS, RequestColumns
from loadgen.explanation.server_words import ServerWords
from loadgen.explanation.steps import Arrivals
from loadgen.util.arrays import Floats

FULL = 0.9  # running requests, weighted by those that wait, as a share of their maximum
KV_FULL = 0.8
PLATEAU = 0.75  # share of the waits during which the number of streams is at its maximum
MOMENTS = 8  # of each wait that are looked at
STARVED = 0.02  # preemptions, as a share of the requests, and at least 3


def queue_kind(
    requests: RequestColumns,
    arrivals: Arrivals | None,
    gaps: Gaps | None,
    words: ServerWords,
    budget: float | None = None,
) -> tuple[str, str]:
    """Tell why requests waited.

    Args:
        requests, arrivals, gaps, words: Of the run.
        budget: The prompt tokens of each step, if each is full of them.

    Returns:
        The name of the cause, and its evidence.
    """
    many = max(3, STARVED * len(requests))
    if words.preemptions >= many or _is_kv_full(words):
        usage = words.kv_usage[np.isfinite(words.kv_usage)]
        full = f", KV cache up to {usage.max():.0%} full" if len(usage) else ""
        return "kv", f"{words.preemptions:.0f} preemptions{full}"
    if words.tells_queue:
        is_told = words.is_told
        running, waiting = words.running[is_told], words.waiting[is_told]
        most = float(running.max())
        share = float((waiting * running).sum() / waiting.sum()) / most if most else 0.0
        if share > FULL and waiting.max() >= 2:
            evidence = (
                f"{share * most:.1f} of at most {most:.0f} requests ran while up to "
                f"{waiting.max():.0f} waited"
            )
            return "queue-slots", evidence
        busy = running[waiting > 0]
        evidence = (
            f"{busy.min():.0f} to {most:.0f} requests ran while up to {waiting.max():.0f} waited"
        )
        return "queue-prefill", evidence
    if budget is not None:
        return "queue-prefill", f"each step computed about {budget:.0f} tokens of prompts"
    starved = 0 if gaps is None else gaps.count(Stall.STARVED)
    if starved >= many:
        return "kv", f"{starved} times a stream stood still alone and did not catch up"
    if arrivals is None:
        return "queue-prefill", "the times of tokens are not known"
    return _by_streams(requests, arrivals)


def _is_kv_full(words: ServerWords) -> bool:
    usage: Floats = words.kv_usage[words.waiting > 0] if len(words.kv_usage) else words.kv_usage
    return bool(len(usage) and (usage > KV_FULL).mean() > 0.5)


def _by_streams(requests: RequestColumns, arrivals: Arrivals) -> tuple[str, str]:
    """Tell by the streams that decode while somebody waits."""
    ttft_ms = requests.ttft_ms
    said_ms = np.clip(requests.queue * MS, 0.0, ttft_ms)
    fast_ms = float(np.percentile(ttft_ms - said_ms, 10))
    slow = ttft_ms > 1.6 * fast_ms + 10
    if not slow.any():
        return "queue-prefill", "nobody waited long"
    begun, ended = np.sort(arrivals.first_ms), np.sort(arrivals.last_ms)
    first_ms = arrivals.first_ms[slow]
    since_ms = first_ms - ttft_ms[slow] + fast_ms
    moments = np.linspace(since_ms, first_ms - 1, MOMENTS)
    streams = np.searchsorted(begun, moments, side="right") - np.searchsorted(ended, moments)
    most = arrivals.most_streams
    top = float(np.percentile(streams, 95))
    full = float((streams >= top - 1).mean())
    # Answers of one token are no streams.
    if top >= 1 and full > PLATEAU and most <= top + 1:
        evidence = (
            f"{top:.0f} streams at once in {full:.0%} of the waits, and never more than {most}"
        )
        return "queue-slots", evidence
    return "queue-prefill", f"{streams.min()} to {most} streams at once while requests waited"
