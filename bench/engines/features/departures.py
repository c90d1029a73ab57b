"""Departures: users who leave are in no latency, and the server's counters show that it stops
for them.
"""

from collections.abc import Iterator
from typing import Any

from bench.engines.features.measured_run import MeasuredRun, Row, TriedServer

REQUESTS, TOKENS = 16, 10
TURNS, SESSIONS = 3, 5
DISCONNECTS = (f"20%@tokens={TOKENS}", "20%@after=300ms")


def rows(server: TriedServer) -> Iterator[Row]:
    """Run with users who leave at a token, after a time, and in the middle of a session; nothing
    is sent again.
    """
    load = [
        "--backend",
        "openai-chat",
        "--random-output-len",
        str(server.output_tokens),
        "--max-concurrency",
        "4",
    ]
    for asked in DISCONNECTS:
        run = server.measure(
            *load, "--random-input-len", "50", "--num-prompts", str(REQUESTS), "--disconnect", asked
        )
        problems = (
            *outcome_problems(server, run),
            *time_problems(asked, run),
            *server_problems(server, run),
        )
        yield Row(f"--disconnect {asked}", str(REQUESTS), summary(server, run), problems)
    load += [
        "--random-input-len",
        "20",
        "--dataset-name",
        "multi_turn",
        "--num-prompts",
        str(TURNS * SESSIONS),
    ]
    run = server.measure(*load, "--turns", str(TURNS), "--disconnect", DISCONNECTS[0])
    departures = run.own["departures"]
    found = (
        f"{departures['disconnected']} left, and {departures['never_sent']} further turns "
        "were not sent"
    )
    asked = f"--turns {TURNS} --disconnect {DISCONNECTS[0]}"
    yield Row(
        asked, f"{TURNS * SESSIONS} in {SESSIONS} sessions", found, tuple(session_problems(run))
    )


def summary(server: TriedServer, run: MeasuredRun) -> str:
    """What the result says of the server and of the users who left."""
    stop = run.own["departures"]["server"]
    answer = {True: "stopped", False: "went on", None: "not known whether it stopped"}[
        stop["stopped"]
    ]
    aborted = "no counter" if stop["aborted"] is None else f"{stop['aborted']:.0f}"
    return (
        f"{len(departed(run))} left; {answer}: {stop['unread_tokens']:.0f} tokens generated of "
        f"{unread_tokens(server, run)} that they did not read; aborted requests counted: {aborted}"
    )


def session_problems(run: MeasuredRun) -> Iterator[str]:
    """Where a session goes on without its user."""
    ended = set[int]()
    for record in run.records:
        is_sent = record["sent"] is not None
        if is_sent == (record["session"] in ended):
            yield (
                f"turn {record['turn']} of session {record['session']} was "
                f"{'sent' if is_sent else 'not sent'}"
            )
        if record["outcome"] == "disconnected":
            ended.add(record["session"])
    departures = run.own["departures"]
    unsent = sum(record["sent"] is None for record in run.records)
    if (
        (departures["disconnected"], departures["never_sent"]) != (len(ended), unsent)
        or not ended
        or not unsent
    ):
        yield (
            f"{len(ended)} users left, {unsent} turns were not sent, and the result says "
            f"{departures}"
        )


def departed(run: MeasuredRun) -> list[dict[str, Any]]:
    """The records of users who left."""
    return [record for record in run.records if record["outcome"] == "disconnected"]


def received_tokens(record: dict[str, Any]) -> int:
    """Events with tokens that had come."""
    return int(record["content_events"] + record["reasoning_events"])


def unread_tokens(server: TriedServer, run: MeasuredRun) -> int:
    """Tokens that the users who left had asked for and not read."""
    return sum(server.output_tokens - received_tokens(record) for record in departed(run))


def outcome_problems(server: TriedServer, run: MeasuredRun) -> Iterator[str]:
    """Where those who left are among the others, or nobody left."""
    own, left = run.own, len(departed(run))
    ok = REQUESTS - left
    if own["outcomes"] != {"ok": ok, "disconnected": left} or not 0 < left < REQUESTS:
        yield f"outcomes are {own['outcomes']}"
    counts = {
        latency["count"]
        for name, latency in own["latency_ms"].items()
        if name.startswith(("ttft", "e2el"))
    }
    if (counts, run.result["completed"], run.result["failed"], own["error_rate"]) != (
        {ok},
        ok,
        0,
        0.0,
    ):
        yield (
            f"latencies are of {counts} requests, {run.result['completed']} ok, "
            f"{run.result['failed']} failed"
        )
    if run.result["total_output_tokens"] != ok * server.output_tokens:
        yield f"{run.result['total_output_tokens']} output tokens of {ok} answers"
    prompts = sum(
        record["prompt_tokens"] for record in run.records if record["outcome"] == "ok"
    ) / max(1, ok)
    if own["retries"] is not None or server.looked_up(run)[0] > REQUESTS * prompts:
        yield "requests were sent again"


def time_problems(asked: str, run: MeasuredRun) -> Iterator[str]:
    """Where a user left at another moment than asked."""
    for record in departed(run):
        name = f"request {record['index']}"
        # Several tokens may come at once.
        if (
            asked.endswith(f"tokens={TOKENS}")
            and not TOKENS <= received_tokens(record) < 2 * TOKENS
        ):
            yield f"{name} was left after {received_tokens(record)} tokens"
        if asked.endswith("ms") and not 300e6 <= record["closed"] - record["sent"] < 600e6:
            yield f"{name} was left after {(record['closed'] - record['sent']) / 1e6:.0f} ms"


def server_problems(server: TriedServer, run: MeasuredRun) -> Iterator[str]:
    """Where the server went on, by its own counters, or the result says anything else than they
    do.
    """
    stop = run.own["departures"]["server"]
    generated = run.increases[server.counters.generated]
    unread = (
        generated - run.result["total_output_tokens"] - sum(map(received_tokens, departed(run)))
    )
    if stop["unread_tokens"] != max(0, unread):
        yield (
            f"{unread:.0f} tokens came to nobody by the counters, and the result says "
            f"{stop['unread_tokens']}"
        )
    if unread > unread_tokens(server, run) / 2:
        yield f"the server generated {unread:.0f} tokens that nobody read"
    if stop["unfinished"] != 0:
        yield f"unfinished requests: {stop['unfinished']}"
    known = stop["finished"] is not None  # it counts complete answers
    if (stop["stopped"], stop["finished"]) != ((True, 0) if known else (None, None)):
        yield f"the result says {stop}"
