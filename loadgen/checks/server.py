"""Server metrics, held against what was measured; parts of groups C, E and F."""

from collections.abc import Iterator

from loadgen.checks.check import NONE, Bound, Check, inapplicable
from loadgen.features import probe
from loadgen.metrics import throughput
from loadgen.metrics.run_data import RunData
from loadgen.util.number_format import SHARE, in_ms, plural, value_range

# Between our send and the moment from which a server counts lie the network and its HTTP front end,
# tokenizing often included, and the way back from its first token to ours. Scrapes bound what a
# connection and a request take.
SLACK_NS, SLACK_SHARE = 5e6, 0.05
BELOW_NS, BELOW_SHARE = 1e6, 0.01  # what clocks and rounding can make of it
MAX_APART = Bound(0.001, SHARE)
ALL, ALONE, TTFT, SOONER, TOKENS, RESTARTS, OVERLONG = (
    "metrics missing",
    "other clients",
    "TTFT above the server's",
    "token before the server's",
    "tokens differ from the server's",
    "server counters reset",
    "server times too long",
)


def distortion(run: RunData) -> list[Check]:
    """Group C: do the server's first tokens take much longer to reach this client?"""
    why, theirs, ours = _ttft_ns(run)
    if why:
        return [inapplicable(TTFT, why)]
    limit = max(SLACK_NS, SLACK_SHARE * theirs) + 1e6 * (run.telemetry.fastest_ms or 0.0)
    about = f"apart: mean TTFT {in_ms(ours)} from sent, {in_ms(theirs)} by the server"
    advice = (
        "the difference arises in the network, in a proxy, or in the server before its TTFT starts "
        "(HTTP, tokenizing): how far this client can be off is its client error"
    )
    bound = Bound(limit / 1e6, "ms")
    return [bound.check(TTFT, (ours - theirs) / 1e6, about, advice, counts=False)]


def workload(run: RunData) -> list[Check]:
    """Group E: do all servers have metrics; did they serve this run, and nothing else; did our
    calls succeed?

    The servers without metrics are named where others have some.
    """
    missing = []
    if names := run.telemetry.missing:
        advice = (
            "name the metrics of every server with --server-metrics, or start it so that it has any"
        )
        servers = len(names) + len(run.telemetry.sources)
        about = f"of {servers} servers without metrics: {', '.join(names)}"
        missing.append(NONE.check(ALL, len(names), about, advice, run.relied_on))
    return [*missing, *_to_us_alone(run), *call_checks(run)]


def _to_us_alone(run: RunData) -> list[Check]:
    if why := unknown_because(run):
        return [inapplicable(ALONE, why)]
    if run.snapshot.counters["results"] > run.snapshot.ok:
        return [inapplicable(ALONE, "requests have several inputs, which servers count one by one")]
    foreign = _foreign(run)
    if foreign is None:
        return [inapplicable(ALONE, "the server counts no requests")]
    count = run.telemetry.increase("requests")
    advice = (
        "name the metrics of every server behind the URL with --server-metrics"
        if count is not None and count < run.snapshot.ok
        else "other clients used the server during the run: measure when the server is idle"
    )
    return [NONE.check(ALONE, *foreign, advice, run.relied_on)]


def consistency(run: RunData) -> list[Check]:
    """Group F: can both what the server says and what was measured be?"""
    restarts = inapplicable(RESTARTS, unknown_because(run))
    if run.telemetry.sources:
        advice = (
            "the server restarted during the run, or several servers share the URL: read its log"
        )
        count = run.telemetry.restarts
        restarts = NONE.check(RESTARTS, count, "during the run", advice)
    return [restarts, _sooner(run), _tokens(run), _overlong(run)]


def _overlong(run: RunData) -> Check:
    """The server cannot have spent more time on a request than passed here."""
    said = sum(run.snapshot.said_times.values())
    if not said:
        return inapplicable(OVERLONG, "the server says no times of requests")
    advice = "do not read what the server says of its times: they are wrong, or of other requests"
    about = f"of {plural(said, 'request')} with times of the server"
    return NONE.check(OVERLONG, run.snapshot.counters["overlong_times"], about, advice)


def _sooner(run: RunData) -> Check:
    why, theirs, ours = _ttft_ns(run)
    if why:
        return inapplicable(SOONER, why)
    bound = Bound(max(BELOW_NS, BELOW_SHARE * theirs) / 1e6, "ms")
    about = f"below: mean TTFT {in_ms(ours)} from sent, {in_ms(theirs)} by the server"
    advice = (
        "a token cannot arrive before the server has it: the client's stamps or the server's "
        "clock are wrong"
    )
    return bound.check(SOONER, (theirs - ours) / 1e6, about, advice)


def _tokens(run: RunData) -> Check:
    counters, theirs = run.snapshot.counters, run.telemetry.increase("generation_tokens")
    if why := _why_not(run):
        return inapplicable(TOKENS, why)
    if theirs is None:
        return inapplicable(TOKENS, "the server does not count what it generates")
    ours = counters["output_tokens"]
    by_server = counters["usage_requests"] == run.snapshot.ok
    advice = (
        "the server's usage and its metrics differ: compare both with its log"
        if by_server
        else "loadgen's own count may be wrong: request usage, or give the server's tokenizer "
        "with --tokenizer"
    )
    about = f"apart: {ours} output tokens, {theirs:.0f} by the server"
    return MAX_APART.check(TOKENS, abs(theirs - ours) / max(1.0, theirs), about, advice)


def unknown_because(run: RunData) -> str:
    """Why the server's counts are not known of the run, if they are not."""
    telemetry = run.telemetry
    if telemetry.missing:
        return "some of the servers have no metrics"
    if not telemetry.sources:
        return "there are no server metrics"
    if not telemetry.covers:
        return "the server did not answer before the run and after it"
    return "its counters were reset" if telemetry.restarts else ""


def _why_not(run: RunData) -> str:
    """Why the server's numbers are not those of our requests, if they are not."""
    if why := unknown_because(run):
        return why
    if any(worker.lost for worker in run.workers):
        return "a worker was lost, and what it had asked for is among the server's numbers"
    if served_alone(run) is False:
        return "the server's numbers include requests of other clients"
    if probe.count(run):
        return "the server's numbers include probes"
    failed = _given_up(run)
    return (
        f"{plural(failed, 'request')} did not end well, and what the server did for them is unknown"
        if failed
        else ""
    )


def served_alone(run: RunData) -> bool | None:
    """Whether all that was served was ours, and all of ours; None where the server does not
    tell.
    """
    foreign = _foreign(run)
    return None if foreign is None else not foreign[0]


def _foreign(run: RunData) -> tuple[float, str] | None:
    """How many requests the server served beyond ours, or too few of them, and in words; None
    where it does not tell.
    """
    count, least, most = run.telemetry.increase("requests"), answered(run), sent(run)
    if count is not None:
        word = "few" if count < least else "many"
        ours = value_range(least, most)
        about = f"too {word}: {count:.0f} requests by the server, our {ours}"
        return max(least - count, count - most, 0), about
    levels = zip(run.telemetry.levels("running"), run.telemetry.levels("waiting"), strict=False)
    at_once = max(map(sum, levels), default=None)
    if at_once is None:
        return None
    peak, given_up = throughput.peak_concurrency(run.snapshot), _given_up(run)
    about = f"too many: up to {at_once:.0f} requests at once by the server, our {peak}"
    about += f", and {given_up} that ended without an answer" if given_up else ""
    return max(at_once - peak - min(1, probe.count(run)) - given_up, 0), about


def _given_up(run: RunData) -> int:
    """How many requests were sent and have no answer: the server may go on with them while the
    next ones come.
    """
    return int((run.snapshot.sent >= 0).sum()) - run.snapshot.ok


def sent(run: RunData) -> int:
    """How many requests were sent, every attempt of those that were sent again and the probes
    among them.
    """
    again = run.snapshot.retried["attempts"]
    return int((run.snapshot.sent >= 0).sum()) + int(again.sum()) - len(again) + probe.count(run)


def answered(run: RunData) -> int:
    """How many requests were answered well, the probes among them."""
    return run.snapshot.ok + len(probe.e2el_ns(run))


def received_tokens(run: RunData) -> int:
    """How many output tokens came, the one of each probe among them."""
    counters = run.snapshot.counters
    return counters["output_tokens"] + counters["lost_token_events"] + probe.count(run)


def _ttft_ns(run: RunData) -> tuple[str, float, float]:
    """Why the mean TTFT of the same requests is not known by both; else empty, and it by the
    server and from sent.
    """
    theirs, ours = run.telemetry.ttft, run.snapshot.histograms["ttft_sent"]
    if why := _why_not(run):
        return why, 0.0, 0.0
    if theirs is None or theirs.mean is None or ours.mean is None or theirs.count != ours.count:
        return "the server keeps no TTFT of these requests", 0.0, 0.0
    return "", theirs.mean * 1e9, ours.mean


FAILED, NOT_BUSY = "server call failed", "profiler not started"


def call_checks(run: RunData) -> Iterator[Check]:
    """Check the calls; nothing where none was asked for."""
    calls = run.trailer.calls
    failed = [call.error for call in calls if call.error is not None]
    if calls:
        advice = "what the call was to do was not done: read the server's log"
        about = f"of {plural(len(calls), 'call')} failed" + (
            f": POST {failed[0]}" if failed else ""
        )
        yield NONE.check(FAILED, len(failed), about, advice, counts=False)
    threshold = run.settings.profile_batch_threshold
    if threshold is not None:
        started = any(call.moment == "during" for call in calls)
        most = max(run.telemetry.levels("running"), default=None)
        value, advice = (
            "started",
            "lower --profile-batch-threshold, or raise the load; metrics are read once a second",
        )
        if not started:
            value = (
                "unknown how many requests ran"
                if most is None
                else f"at most {most:.0f} requests running"
            )
        if most is None:
            advice = (
                "the server's metrics do not say how many requests run: give --metrics-url, "
                "or leave the flag out"
            )
        yield Check(NOT_BUSY, started, value, f"{threshold} or more", advice, counts=False)
