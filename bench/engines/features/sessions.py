"""Sessions: each turn follows the one before it, and finds in the prefix cache what that one
left there.
"""

import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.engines.features.measured_run import MeasuredRun, Row, TriedServer

TURNS, RANDOM_TURNS = (4, 3, 4, 2), (3, 3, 3)  # of each session
WORDS = (
    "ship",
    "sails",
    "across",
    "wide",
    "blue",
    "ocean",
    "island",
    "sailors",
    "sing",
    "songs",
    "under",
    "bright",
)
ANSWER_WORDS = 12
# of the input: a recorded answer may begin with the tokens that the server itself has generated
TOLERANCE = 0.01


def rows(server: TriedServer) -> Iterator[Row]:
    """Run sessions of recorded conversations, with the recorded answers and with those of the
    server, and made ones.
    """
    path = conversations(server.folder / "conversations.json", server.words)
    recorded = ["--dataset-name", "sharegpt", "--dataset-path", str(path), "--turns", "all"]
    yield row(
        server, TURNS, recorded, "--history", "recorded", "--session-header", "X-Conversation"
    )
    yield row(server, TURNS, recorded, "--history", "real")
    length = str(server.words)
    made = [
        "--random-input-len",
        length,
        "--random-output-len",
        str(2 * ANSWER_WORDS),
        "--random-prefix-len",
        length,
    ]
    yield row(
        server, RANDOM_TURNS, made, "--dataset-name", "multi_turn", "--turns", str(RANDOM_TURNS[0])
    )


def row(server: TriedServer, turns: tuple[int, ...], flags: list[str], *asked: str) -> Row:
    """Run sessions with these numbers of turns, one after the other, from a cold cache."""
    load = ["--backend", "openai-chat", "--num-prompts", str(sum(turns)), "--max-concurrency", "1"]
    run = server.measure(*load, "--ignore-eos", "--cache", "cold", *flags, *asked)
    problems = [
        *order_problems(run.records),
        *cache_problems(run),
        *counter_problems(server, run),
        *result_problems(run, turns),
    ]
    cache = run.own["prefix_cache"]
    if "recorded" in asked and cache["hit_rate"] < cache["best_hit_rate"]:
        problems.append("recorded answers are known, and the cache gave back less than the best")
    cached = ", ".join(map(str, cached_per_turn(run)))
    seen = f"turns 1 to {max(turns)} took {cached} tokens from the cache, {hit_rate_text(run)}"
    return Row(" ".join(asked), f"{sum(turns)} in {len(turns)} sessions", seen, tuple(problems))


def conversations(path: Path, words: int) -> Path:
    """Write conversations of drawn words in ShareGPT's form; the file's path."""
    draw = random.Random(3)

    def said(by: str, count: int) -> dict[str, str]:
        return {"from": by, "value": " ".join(draw.choices(WORDS, k=count))}

    found = [
        [
            said(by, count)
            for _ in range(turns)
            for by, count in (("human", words), ("gpt", ANSWER_WORDS))
        ]
        for turns in TURNS
    ]
    path.write_text(json.dumps([{"conversations": texts} for texts in found]))
    return path


def order_problems(records: list[dict[str, Any]]) -> Iterator[str]:
    """What a turn must not do: be sent before its predecessor has ended, or leave out what that
    one had said.
    """
    for before, turn in pairwise(records):
        if turn["session"] != before["session"]:
            continue
        name = f"turn {turn['turn']} of session {turn['session']}"
        if turn["turn"] != before["turn"] + 1:
            yield f"{name} comes after turn {before['turn']}"
        if turn["due"] + turn["sent"] < before["due"] + before["closed"]:
            yield f"{name} was sent before its predecessor had ended"
        if turn["prompt_tokens"] <= before["prompt_tokens"]:
            yield f"{name} does not repeat the turns before it"


def cache_problems(run: MeasuredRun) -> Iterator[str]:
    """Where the server has taken less of a turn's predecessor from its cache than it holds, or
    more than there was.
    """
    block = run.own["prefix_cache"]["block_size"]
    for before, turn in pairwise(run.records):
        if turn["session"] != before["session"]:
            continue
        # A token of the template may become one with the first of the answer.
        least = (before["prompt_tokens"] - 1) // block * block
        most = before["prompt_tokens"] + before["completion_tokens"]
        if not least <= turn["cached_tokens"] <= most:
            yield (
                f"turn {turn['turn']} of session {turn['session']} has {turn['cached_tokens']} "
                f"tokens from the cache, not {least} to {most}"
            )


def counter_problems(server: TriedServer, run: MeasuredRun) -> Iterator[str]:
    """Where the server's counters contradict the counts in its answers."""
    asked = sum(record["prompt_tokens"] for record in run.records)
    found = sum(record["cached_tokens"] for record in run.records)
    if server.looked_up(run) != (asked, found):
        yield (
            f"the server looked up and found {server.looked_up(run)} tokens, and its answers "
            f"say {(asked, found)}"
        )


def result_problems(run: MeasuredRun, turns: tuple[int, ...]) -> Iterator[str]:
    """Where the result says anything else of sessions with these numbers of turns than the
    server and the records.
    """
    own, cache = run.own, run.own["prefix_cache"]
    counts = [sum(place <= count for count in turns) for place in range(1, max(turns) + 1)]
    found = [(turn["requests"], turn["ok"]) for turn in own["turns"]]
    if found != [(count, count) for count in counts]:
        yield f"requests of each turn, and those that were ok, are {found}"
    if (own["sessions"]["count"], own["sessions"]["complete"]) != (len(turns), len(turns)):
        yield f"sessions are {own['sessions']}"
    share = own["tokens"]["cached_tokens"] / run.result["total_input_tokens"]
    if (
        cache["hit_rate"] != share
        or share != sum(cached_per_turn(run)) / run.result["total_input_tokens"]
    ):
        yield f"the share from the cache is {cache['hit_rate']}"
    if cache["best_hit_rate"] is None or cache["hit_rate"] > cache["best_hit_rate"] + TOLERANCE:
        yield f"{cache['hit_rate']} came from the cache, and {cache['best_hit_rate']} could at best"


def cached_per_turn(run: MeasuredRun) -> list[int]:
    """Tokens that the server has taken from its cache, of all first turns, all second ones, and
    so on.
    """
    last = max(record["turn"] for record in run.records)
    return [
        sum(r["cached_tokens"] for r in run.records if r["turn"] == turn)
        for turn in range(1, last + 1)
    ]


def hit_rate_text(run: MeasuredRun) -> str:
    """The share of the input that came from the cache, and the share that could at best."""
    cache = run.own["prefix_cache"]
    return f"{cache['hit_rate']:.1%} of the input, {cache['best_hit_rate']:.1%} at best"
