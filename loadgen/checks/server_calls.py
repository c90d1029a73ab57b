"""Calls to the server beside the load: did all of them succeed? A part of group E."""

from collections.abc import Iterator

from loadgen.checks.check import Check
from loadgen.metrics.run_data import RunData

FAILED, NOT_BUSY = "server call failed", "profiler not started"


def checks(run: RunData) -> Iterator[Check]:
    """Check the calls; nothing where none was asked for."""
    failed = [f"{call.error}" for call in run.trailer.calls if call.error is not None]
    if run.trailer.calls:
        advice = "what the call was to do was not done: read the server's log"
        value = f"POST {failed[0]}" if failed else "all succeeded"
        yield Check(FAILED, not failed, value, "0", advice, counts=False)
    threshold = run.settings.profile_batch_threshold
    if threshold is not None:
        started = any(call.moment == "during" for call in run.trailer.calls)
        most = max(run.telemetry.levels("running"), default=None)
        value, advice = "started", "lower --profile-batch-threshold, or raise the load; metrics are read once a second"
        if not started:
            value = "unknown how many requests ran" if most is None else f"at most {most:.0f} requests running"
        if most is None:
            advice = "the server's metrics do not say how many requests run: give --metrics-url, or leave the flag out"
        yield Check(NOT_BUSY, started, value, f"{threshold} or more", advice, counts=False)
