"""Cheats: servers that look better than they serve. A tool is right where the cheat found nothing
to take hold of, and has noticed it where it is wrong and said so.
"""

import re
from dataclasses import replace

from loadgen.lab.judge.case import (
    WORD,
    Ask,
    Case,
    Load,
    Plan,
    Play,
    add,
    delta,
    ends,
    good,
    paced,
    steady,
    streamed,
)
from loadgen.lab.judge.cases.tokens import counts
from loadgen.testing.replies import DONE

TOOLS = re.compile(rb"loadgen|vllm|guidellm|aiperf|python|bench|aiohttp|httpx|evalscope", re.I)
CHEATED = ("sent_cheated",)
SHARE = 4  # of the tokens, one is sent
FAST = {"first_ms": 2.0, "gap_ms": 1.0}


def cached(ask: Ask) -> Plan:
    """A prompt that came before is answered from a cache of answers."""
    if not ask.before.get(ask.prompt):
        return steady(ask)
    return replace(steady(ask, **FAST), cheats=True)


def recognizes(ask: Ask) -> Plan:
    """A request whose headers name a load generator is answered faster."""
    if not TOOLS.search(ask.request.head):
        return steady(ask)
    return replace(steady(ask, **FAST), cheats=True)


def short(ask: Ask) -> Plan:
    """A quarter of the tokens, and then the end."""
    sent = ask.request.tokens // SHARE
    events = paced([delta(content=WORD)] * sent)
    return replace(streamed(events, delta("stop"), counts(ask, sent), DONE), cheats=True)


def inflated(ask: Ask) -> Plan:
    """A quarter of the tokens; the usage counts all that were asked for."""
    events = paced([delta(content=WORD)] * (ask.request.tokens // SHARE))
    return replace(streamed(events, delta("length"), counts(ask), DONE), cheats=True)


def accepts_all(ask: Ask) -> Plan:
    """Drafts of four tokens are accepted unseen: the text only repeats itself."""
    events = paced([delta(content=" la" * SHARE)] * (ask.request.tokens // SHARE), each=SHARE)
    return replace(streamed(events, *ends(ask, good(ask))), cheats=True)


def worse_under_load(ask: Ask) -> Plan:
    """Alone, an answer has a text; beside others, one word again and again, twice as fast."""
    if not ask.in_flight:
        return steady(ask)
    answer = good(ask, text=" la")
    plan = streamed(paced(answer.tokens, gap_ms=5), *ends(ask, answer))
    return replace(plan, cheats=True)


def early_token(ask: Ask) -> Plan:
    """A blank goes out at once, and the answer begins 300 ms later."""
    answer = good(ask)
    events = [(1.0, delta(content=" "), 1), *paced(answer.tokens[1:], first_ms=300)]
    return replace(streamed(events, *ends(ask, answer)), cheats=True)


PLAYS: dict[str, tuple[str, str, Play, Load]] = {
    "cheat-cached": (
        "Answers a prompt that came before from a cache.",
        "MLPerf Inference TEST04; endpoints#320",
        cached,
        Load(),
    ),
    "cheat-recognizes": (
        "Answers faster where headers name a load generator.",
        "InferenceX#3257",
        recognizes,
        Load(),
    ),
    "cheat-short": (
        "Stops after a quarter of the tokens.",
        "MLPerf Inference TEST06",
        short,
        Load(),
    ),
    "cheat-inflated": (
        "Sends a quarter of the tokens that its usage counts.",
        "MLPerf Inference TEST06",
        inflated,
        Load(),
    ),
    "cheat-accepts-all": (
        "Accepts drafts unseen: four tokens a step, without sense.",
        "endpoints#332, synthetic acceptance",
        accepts_all,
        Load(),
    ),
    "cheat-under-load": (
        "Answers beside others without sense, and faster.",
        "MLPerf Inference TEST01, TEST09",
        worse_under_load,
        Load(20, 20),
    ),
    "cheat-early-token": (
        "Sends a blank at once, the answer after 300 ms.",
        "endpoints#8",
        early_token,
        Load(),
    ),
}
for name, (does, source, play, load) in PLAYS.items():
    add(Case(name, "cheats", does, source, play, CHEATED, load, chat=name != "cheat-cached"))
