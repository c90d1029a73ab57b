"""Commands of AIPerf and of genai-perf, its predecessor.

AIPerf keeps a number of requests in flight, or sends them at a rate with exponential gaps;
genai-perf (perf_analyzer) has even gaps, and its older releases measure windows until three agree.
"""

import re
from functools import partial
from typing import Any

from loadgen.cli.translate import aiperf_data
from loadgen.cli.translate.aiperf_data import TURNS
from loadgen.cli.translate.flag_table import Given, Tool, flags_of
from loadgen.cli.translate.shell_words import number, product
from loadgen.cli.translate.translation import (
    CHAT,
    LENGTHS,
    POOLING,
    Translation,
    pairs,
    whole,
)

APIS = {
    "chat": CHAT,
    "multimodal": CHAT,
    "vision": CHAT,
    "completions": "openai",
    "responses": "openai-responses",
    "embeddings": "openai-embeddings",
    "cohere_rankings": "vllm-rerank",
    "rankings": "vllm-rerank",
    "nim_rankings": "vllm-rerank",
    "hf_tei_rankings": "vllm-rerank",
}
COUNT, TIME = "--request-count", "--benchmark-duration"
METRICS = {
    "time_to_first_token": "ttft",
    "inter_token_latency": "tpot",
    "request_latency": "e2el",
    "ttft": "ttft",
    "itl": "tpot",
}


def finish(given: Given, result: Translation, *, genai_perf: bool = False) -> None:
    """Translate what the flags of a command say together."""
    api = _api(given, result)
    fields: dict[str, Any] = {}
    for text in given.all("--extra-inputs"):
        fields |= pairs(text)
    result.serve(given.all("--url") or ["localhost:8000"], api, given.get("--endpoint"))
    if "--streaming" not in given and api not in POOLING:
        result.put("--disable-stream")
    if headers := given.all("--header"):
        result.put("--header", *(re.sub(r":\s*", "=", header, count=1) for header in headers))
    first, *others = result.value("--model").split(",")
    if others:
        result.block("several models: one is sent in each request; write a `--class` for each")
        result.put("--model", first)
    result.body(fields)
    maximum = next((str(fields[name]).removeprefix("\1") for name in LENGTHS if name in fields), "")
    aiperf_data.translate(given, result, api, maximum)
    if api not in POOLING:
        result.ended_by_eos()
    _load(given, result, genai_perf=genai_perf)
    aiperf_data.say_repeated(given, result)
    _outputs(given, result)


def _api(given: Given, result: Translation) -> str:
    path = given.get("--endpoint")
    usual = "completions" if path.endswith("/completions") and "chat" not in path else "chat"
    kind = given.get("--endpoint-type", usual)
    if given.get("--service-kind", "openai") != "openai":
        result.block(f"--service-kind {given.get('--service-kind')}: Triton's own API")
    if kind not in APIS:
        result.block(f"--endpoint-type {kind} is not an API of loadgen")
    if kind.endswith("rankings") and kind != "cohere_rankings":
        result.block(
            f"--endpoint-type {kind}: NIM and TEI have bodies and paths of their own; loadgen has "
            "vllm-rerank at /v1/rerank"
        )
        result.differ("api", "the body of /v1/rerank: query and documents are texts")
    if kind == "cohere_rankings":
        result.put("--endpoint", "/v2/rerank")
    return APIS.get(kind, CHAT)


# -- the load


def _load(given: Given, result: Translation, *, genai_perf: bool) -> None:
    rate, slots = given.get("--request-rate"), given.get("--concurrency")
    sessions = given.get("--session-concurrency")
    slots = slots or sessions
    if "--scenario" in given:
        if slots:
            result.put("--users", slots)
        slots = ""
    elif "--user-centric-rate" in given:
        _users(given, result)
    elif not rate and not slots and "--fixed-schedule" not in given:
        slots = "1"
    _ends(given, result, slots, rate, genai_perf=genai_perf)
    if rate:
        _rate(given, result, rate, genai_perf=genai_perf)
    ramp = given.get("--concurrency-ramp-duration")
    if slots and ramp and "--scenario" not in given:
        _ramp(given, result, slots, ramp)
    elif slots and "--think-time" in result:
        result.put("--users", slots)
        result.differ(
            "users-think-between-sessions",
            "users also think between two sessions, and start at random times",
        )
    elif slots:
        result.put("--max-concurrency", slots)
    if "--request-cancellation-rate" in given:
        share, delay = (given.get(f"--request-cancellation-{what}") for what in ("rate", "delay"))
        result.put("--disconnect", f"{whole(share)}%@after={whole(delay or '0')}s")


def _users(given: Given, result: Translation) -> None:
    """Ask for users who begin a turn each time that is due, as nearly as thinking does."""
    users, rate = given.get("--num-users", "1"), given.get("--user-centric-rate")
    gap, per_second = number(users), number(rate)
    result.put("--users", users)
    if gap and per_second:
        result.put("--think-time", f"{gap / per_second:g}")
    result.differ(
        "think-time",
        "each user thinks for users / rate after an answer, not between "
        "the beginnings of two requests",
    )


def _ends(given: Given, result: Translation, slots: str, rate: str, *, genai_perf: bool) -> None:
    """Say how many requests are sent, or for how long."""
    count, time = given.get(COUNT), given.get(TIME)
    windows = given.get("--measurement-interval")
    if time:
        result.put("--duration", time)
        result.tail()
    if count:  # loadgen counts the texts of requests that have several
        texts = result.value("--random-batch-size") or "1"
        result.put("--num-prompts", count if texts == "1" else product(count, texts))
    elif "--conversation-num" in given and result.value("--turns") == "all":
        result.block("--conversation-num counts conversations, whose turns are not known here")
        result.put("--num-prompts", given.get("--conversation-num"))
    elif "--conversation-num" in given:
        result.put("--num-prompts", product(given.get("--conversation-num"), given.get(TURNS, "1")))
    elif genai_perf and (windows or "--service-kind" in given) and not time:
        result.block(
            "no number of requests: genai-perf measures windows of --measurement-interval until "
            "three agree; give --duration or --num-prompts"
        )
        result.differ("ends-by-windows", "three windows, the least there can be")
        result.put("--duration", _three(windows or "10000"))
    elif not time and result.value("--dataset-name") == "jsonl" and not genai_perf:
        if "--turns" in result:
            result.differ("all-rows", "AIPerf sends each conversation once: give --num-prompts")
        else:
            result.put("--num-prompts", "-1")
    elif (
        not time
        and "trace" not in given.get("--custom-dataset-type")
        and not any(flag in given for flag in ("--input-file", "--fixed-schedule", "--scenario"))
    ):
        result.put("--num-prompts", _default_count(slots if not rate else ""))


def _default_count(slots: str) -> str:
    if not slots:
        return "10"
    return str(max(10, 2 * int(slots))) if slots.isdigit() else product(slots, "2")


def _three(milliseconds: str) -> str:
    return f"{3 * float(milliseconds) / 1000:g}" if milliseconds.isdigit() else milliseconds


def _rate(given: Given, result: Translation, rate: str, *, genai_perf: bool) -> None:
    result.put("--request-rate", rate)
    law = given.get("--arrival-pattern", "constant" if genai_perf else "poisson")
    if law == "constant":
        result.put("--burstiness", "inf")
    elif law == "gamma" and "--arrival-smoothness" in given:
        result.put("--burstiness", given.get("--arrival-smoothness"))
    if ramp := given.get("--request-rate-ramp-duration"):
        result.block(
            f"--request-rate-ramp-duration: write --rate-profile 1-{rate}@{ramp}s,{rate}@"
            "TIME in place of --request-rate and --duration"
        )
        result.differ("ramp", "the rate is constant")


def _ramp(given: Given, result: Translation, slots: str, ramp: str) -> None:
    time = given.get(TIME)
    rest = (number(time) or 0) - (number(ramp) or 0)
    if not number(time) or not number(ramp):
        result.block(
            "--concurrency-ramp-duration: a ramp needs the length of the run; write "
            f"--concurrency-profile 1-{slots}@{ramp}s,{slots}@TIME"
        )
        result.put("--max-concurrency", slots)
        return
    phases = [f"1-{slots}@{whole(ramp)}s", *([f"{slots}@{rest:g}s"] if rest > 0 else [])]
    result.put("--concurrency-profile", ",".join(phases))
    result.drop("--duration", "--num-prompts")


# -- the results


def _outputs(given: Given, result: Translation) -> None:
    if limits := given.all("--goodput"):
        words = [word for text in limits for word in text.split()]
        result.put("--goodput", *(_limit(word) for word in words))
    if "--no-server-metrics" in given:
        result.put("--server-metrics", "off")
    if given.get("--export-level") in ("records", "raw"):
        result.put("--records", "records.jsonl")
    if given.get("--ui") == "none":
        result.put("--quiet")
    runs = given.get("--num-profile-runs", "1")
    if runs != "1":
        result.put("--num-runs", runs)
        result.differ(
            "prompts-of-repeated-runs",
            "each run has prompts of its own; those of AIPerf's runs are the same",
        )
    if not given.is_zero("--warmup-request-count"):
        result.differ(
            "warm-up-prompts",
            f"warm-ups have prompts of their own; {result.title} sends the first ones of the run",
        )
    result.save(given.get("--artifact-dir"), given.get("--profile-export-file"))


def _limit(word: str) -> str:
    name, _, value = word.partition(":")
    return f"{METRICS.get(name, name)}:{value}"


AIPERF = Tool("AIPerf", ("aiperf profile", "aiperf"), flags_of("aiperf"), finish)
GENAI = Tool(
    "genai-perf",
    ("genai-perf profile", "genai-perf"),
    (*flags_of("genai-perf"), *AIPERF.flags),
    partial(finish, genai_perf=True),
)
