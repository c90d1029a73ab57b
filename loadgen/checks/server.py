"""Server metrics, held against what was measured; parts of groups C, E and F."""

from collections.abc import Iterator

from loadgen.checks.check import Check, inapplicable
from loadgen.metrics import throughput
from loadgen.metrics.run_data import Evidence
from loadgen.util.number_format import ms, plural

# Between our send and the moment from which a server counts lie the network and its HTTP front end, tokenizing often
# included, and the way back from its first token to ours. Scrapes bound what a connection and a request take.
SLACK_NS, SLACK_SHARE = 5e6, 0.05
BELOW_NS, BELOW_SHARE = 1e6, 0.01  # what clocks and rounding can make of it
TOKENS_SHARE = 0.001
ALL, ALONE, TTFT, SOONER, TOKENS, RESTARTS = (
    "metrics of every server",
    "served alone",
    "TTFT as the server's",
    "no token before the server's",
    "tokens as the server's",
    "server counts on",
)


def distortion(evidence: Evidence) -> list[Check]:
    """Group C: does anything lie between the server's first tokens and ours that nothing explains?"""
    if why := _why_not(evidence):
        return [inapplicable(TTFT, why)]
    theirs, ours = _ttft_ns(evidence)
    if theirs is None or ours is None:
        return [inapplicable(TTFT, _NO_TTFT)]
    limit = max(SLACK_NS, SLACK_SHARE * theirs) + 1e6 * (evidence.telemetry.fastest_ms or 0.0)
    stall = evidence.snapshot.histograms["loop_stall"].percentile(99) or 0
    doubted = (
        "doubt this client, whose loop stalls as long: see group C"
        if stall > (ours - theirs) / 2
        else "doubt the way to the server, proxies included, or what it does before it counts (HTTP, tokenizing)"
    )
    value = f"mean {ms(ours)} from sent, {ms(theirs)} by the server"
    return [Check(TTFT, ours - theirs <= limit, value, f"{ms(limit)} apart", doubted)]


def workload(evidence: Evidence) -> list[Check]:
    """Group E: do all servers have metrics; did they serve this run, and nothing else?"""
    return [*_all(evidence), *_to_us_alone(evidence)]


def _all(evidence: Evidence) -> Iterator[Check]:
    """Name the servers without metrics, where others have some; nothing where there are none."""
    if missing := evidence.telemetry.missing:
        advice = "name the metrics of every server with --server-metrics, or start it so that it has any"
        yield Check(ALL, False, f"none from {', '.join(missing)}", "all servers, or none", advice, evidence.relied_on)


def _to_us_alone(evidence: Evidence) -> list[Check]:
    if why := _untold(evidence):
        return [inapplicable(ALONE, why)]
    ok = _alone(evidence)
    count, sent = _served(evidence), _sent(evidence)
    if ok is None:
        return [inapplicable(ALONE, "the server counts no requests")]
    if count is None:
        peak = throughput.peak_concurrency(evidence.snapshot)
        value, limit = f"up to {_most_at_once(evidence):.0f} requests at once by the server", f"our {peak:.0f}"
    else:
        value, limit = f"{count:.0f} requests by the server", f"our {evidence.snapshot.ok} to {sent}"
    advice = (
        "name the metrics of every server behind the URL with --server-metrics"
        if count is not None and count < evidence.snapshot.ok
        else "others used the server meanwhile, and are in its numbers and in ours: measure when it is free"
    )
    return [Check(ALONE, ok, value, limit, advice, evidence.relied_on)]


def consistency(evidence: Evidence) -> list[Check]:
    """Group F: can both what the server says and what was measured be?"""
    return [_restarts(evidence), _sooner(evidence), _tokens(evidence)]


def _restarts(evidence: Evidence) -> Check:
    if not evidence.telemetry.sources:
        return inapplicable(RESTARTS, _untold(evidence))
    count = evidence.telemetry.restarts
    advice = "it was started again under load, or another one answers now and then behind the same URL: read its log"
    return Check(RESTARTS, count == 0, f"counters began anew {count} times", "0", advice)


def _sooner(evidence: Evidence) -> Check:
    if why := _why_not(evidence):
        return inapplicable(SOONER, why)
    theirs, ours = _ttft_ns(evidence)
    if theirs is None or ours is None:
        return inapplicable(SOONER, _NO_TTFT)
    limit = max(BELOW_NS, BELOW_SHARE * theirs)
    value = f"mean {ms(ours)} from sent, {ms(theirs)} by the server"
    advice = "doubt this client: no token can be here before the server has it; or its clock, if that is another's"
    return Check(SOONER, theirs - ours <= limit, value, f"at most {ms(limit)} below", advice)


def _tokens(evidence: Evidence) -> Check:
    counters, theirs = evidence.snapshot.counters, evidence.telemetry.increase("generation_tokens")
    if why := _why_not(evidence):
        return inapplicable(TOKENS, why)
    if theirs is None:
        return inapplicable(TOKENS, "the server does not count what it generates")
    ours = counters["output_tokens"]
    by_server = counters["usage_requests"] == evidence.snapshot.ok
    advice = (
        "doubt the server: its usage and its metrics differ; compare both with its log"
        if by_server
        else "doubt our count, which is not the server's: ask for usage, or name the server's --tokenizer"
    )
    value = f"{ours} output tokens, {theirs:.0f} by the server"
    return Check(TOKENS, abs(theirs - ours) <= TOKENS_SHARE * theirs, value, "0.1% apart", advice)


_NO_TTFT = "the server keeps no TTFT of these requests"


def _untold(evidence: Evidence) -> str:
    """Why the server's counts are not known of the run, if they are not."""
    telemetry = evidence.telemetry
    if telemetry.missing:
        return "some of the servers say nothing of themselves"
    if not telemetry.sources:
        return "there are no server metrics"
    if not telemetry.covers:
        return "the server did not answer before the run and after it"
    return "its counters began anew" if telemetry.restarts else ""


def _why_not(evidence: Evidence) -> str:
    """Why the server's numbers are not those of our requests, if they are not."""
    if why := _untold(evidence):
        return why
    if any(shard.lost for shard in evidence.shards):
        return "a worker was lost, and what it had asked for is among the server's numbers"
    if _alone(evidence) is False:
        return "the server's numbers are not of our requests alone"
    failed = _sent(evidence) - evidence.snapshot.ok
    return (
        f"{plural(failed, 'request')} did not end well, and what the server did for them is unknown" if failed else ""
    )


def _alone(evidence: Evidence) -> bool | None:
    """Whether all that was served was ours, and all of ours; None where the server does not tell."""
    count = _served(evidence)
    if count is not None:
        return evidence.snapshot.ok <= count <= _sent(evidence)
    most = _most_at_once(evidence)
    return None if most is None else most <= throughput.peak_concurrency(evidence.snapshot)


def _served(evidence: Evidence) -> float | None:
    """How many requests the server says to have served in the course of the run."""
    return evidence.telemetry.increase("requests")


def _most_at_once(evidence: Evidence) -> float | None:
    running, waiting = evidence.telemetry.levels("running"), evidence.telemetry.levels("waiting")
    return max(map(sum, zip(running, waiting, strict=False)), default=None)


def _sent(evidence: Evidence) -> int:
    return int((evidence.snapshot.sent >= 0).sum())


def _ttft_ns(evidence: Evidence) -> tuple[float | None, float | None]:
    """The mean TTFT by the server and ours from sent, if both are of the same requests."""
    theirs, ours = evidence.telemetry.ttft, evidence.snapshot.histograms["ttft_sent"]
    if theirs is None or theirs.mean is None or theirs.count != ours.count:
        return None, None
    return theirs.mean * 1e9, ours.mean
