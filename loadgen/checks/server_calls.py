"""Calls to the server beside the load: did all of them succeed? A part of group E."""

from collections.abc import Iterator

from loadgen.checks.check import Check
from loadgen.metrics.run_data import RunData

FAILED, NOT_BUSY = "server call failed", "profiler not started"


def checks(run: RunData) -> Iterator[Check]:
    """Check the calls; nothing where none was asked for."""
    failed = [f"{call.error}" for call in run.calls if call.error is not None]
    if run.calls:
        advice = "what the call was to do was not done: read the server's log"
        value = f"POST {failed[0]}" if failed else "all succeeded"
        yield Check(FAILED, not failed, value, "0", advice, counts=False)
    threshold = run.settings.profile_batch_threshold
    if threshold is not None:
        started = any(call.moment == "during" for call in run.calls)
        most = max(run.telemetry.levels("running"), default=None)
        value = "started" if started else f"at most {'?' if most is None else f'{most:.0f}'} requests running"
        advice = "lower --profile-batch-threshold, or raise the load; the server's metrics are read once a second"
        yield Check(NOT_BUSY, started, value, f"{threshold} or more", advice, counts=False)
