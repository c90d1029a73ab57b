"""Commands of AIPerf and of genai-perf, its predecessor.

AIPerf keeps a number of requests in flight, or sends them at a rate with exponential gaps;
genai-perf (perf_analyzer) has even gaps, and its older releases measure windows until three agree.
"""

import re
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from loadgen.cli.translate.aiperf_flags import FLAGS, GENAI_PERF
from loadgen.cli.translate.flag_table import Given, Tool
from loadgen.cli.translate.shell_words import product, varies
from loadgen.cli.translate.translation import (
    CHAT,
    LENGTHS,
    Translation,
    length,
    pairs,
    seconds,
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
POOLING = ("openai-embeddings", "vllm-rerank")
INPUT, DEVIATION, OUTPUT = "--isl", "--isl-stddev", "--osl"
ENTRIES, DEFAULT_ENTRIES, DEFAULT_INPUT = "--num-dataset-entries", "100", "550"
TURNS, DELAY = "--conversation-turn-mean", "--conversation-turn-delay-mean"
COUNT, TIME = "--request-count", "--benchmark-duration"
TRACES = {"mooncake_trace": "mooncake", "bailian_trace": "mooncake", "burst_gpt_trace": "burstgpt"}
AGENTS = {"weka_trace": "weka", "tracelab_trace": "tracelab"}
METRICS = {
    "time_to_first_token": "ttft",
    "inter_token_latency": "tpot",
    "request_latency": "e2el",
    "ttft": "ttft",
    "itl": "tpot",
}
SIGMAS = 3**0.5  # a range of so many deviations on both sides has the variance of the normal


def finish(given: Given, result: Translation, *, genai_perf: bool = False) -> None:
    """Translate what the flags of a command say together."""
    api = _api(given, result)
    fields: dict[str, Any] = {}
    for text in given.all("--extra-inputs"):
        fields |= pairs(text)
    result.serve(given.all("--url") or ["localhost:8000"], api, given.get("--endpoint"))
    if "--streaming" not in given and api not in POOLING:
        result.put("--disable-stream")
    for header in given.all("--header"):
        result.put("--header", re.sub(r":\s*", "=", header, count=1))
    result.body(fields)
    maximum = next((str(fields[name]).removeprefix("\1") for name in LENGTHS if name in fields), "")
    _data(given, result, api, maximum)
    if api not in POOLING:
        result.ended_by_eos()
    _load(given, result, genai_perf=genai_perf)
    _repeated(given, result)
    _outputs(given, result)


def _api(given: Given, result: Translation) -> str:
    kind = given.get("--endpoint-type", "chat")
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


# -- the prompts


def _data(given: Given, result: Translation, api: str, maximum: str) -> None:
    answer = "--random-output-len"
    if "--input-file" in given or "--scenario" in given:
        _file(given, result, maximum)
        return
    if "--public-dataset" in given:
        _public(given, result, maximum)
        return
    prompts, answers = _lengths(given, maximum)
    if api == "vllm-rerank":
        result.put("--dataset-name", "random-rerank")
        result.put("--random-batch-size", given.get("--rankings-passages-mean", "1"))
    elif given.get("--prompt-batch-size", "1") != "1" and api in POOLING:
        result.put("--random-batch-size", given.get("--prompt-batch-size"))
    sent = "--random-input-len"
    count, prefix = given.get("--num-prefix-prompts", "0"), given.get("--prefix-prompt-length", "0")
    if given.get(TURNS, "1") not in ("0", "1"):
        _turns(given, result)
    elif not given.is_zero("--image-width-mean") and not given.is_zero("--image-height-mean"):
        _images(given, result)
    elif count == "1" and prefix != "0":
        result.put("--random-prefix-len", prefix)
    elif count != "0" and prefix != "0":
        sent, answer = "--prefix-repetition-suffix-len", "--prefix-repetition-output-len"
        result.put("--dataset-name", "prefix_repetition")
        result.put("--prefix-repetition-num-prefixes", count)
        result.put("--prefix-repetition-prefix-len", prefix)
    if shared := given.get("--shared-system-prompt-length"):
        result.put("--random-prefix-len", shared)
        result.differ(
            "system-prompt", "the shared text is a part of the prompt, not of its own role"
        )
    result.put(sent, prompts)
    if api in POOLING:
        pass
    elif answers:
        result.put(answer, answers)
    else:
        result.unbounded(answer)


def _lengths(given: Given, maximum: str) -> tuple[str, str]:
    """Return the lengths of prompts and answers; that of answers is "" if none is asked for."""
    prompts = length(given.get(INPUT, DEFAULT_INPUT), given.get(DEVIATION, "0"))
    answers = given.get(OUTPUT)
    if answers:
        return prompts, maximum or length(answers, given.get("--osl-stddev", "0"))
    return prompts, maximum


def _turns(given: Given, result: Translation) -> None:
    turns, deviation = given.get(TURNS), given.get("--conversation-turn-stddev", "0")
    result.put("--dataset-name", "multi_turn")
    result.put("--turns", length(turns, deviation))
    mean, ratio = given.get(DELAY, "0"), given.get("--conversation-turn-delay-ratio", "1")
    spread = given.get("--conversation-turn-delay-stddev", "0")
    if mean != "0":
        if ratio not in ("1", "1.0"):
            mean, spread = (product(value, ratio) for value in (mean, spread))
        pause = seconds(mean)
        if not given.is_zero("--conversation-turn-delay-stddev"):
            pause = f"normal:{pause}:{seconds(spread)}"
        result.put("--think-time", pause)


def _images(given: Given, result: Translation) -> None:
    width, height = (given.get(f"--image-{side}-mean") for side in ("width", "height"))
    spread = [given.get(f"--image-{side}-stddev", "0") for side in ("height", "width")]
    sizes = f"{whole(height)}x{whole(width)}"
    if not all(value in ("0", "0.0") for value in spread):
        if any(map(varies, (width, height, *spread))):
            result.differ("image-sizes", "give their range as --image-sizes HxW-HxW")
        else:
            reach = [round(float(value) * SIGMAS) for value in spread]
            means = [round(float(height)), round(float(width))]
            ends = [
                "x".join(str(mean + sign * far) for mean, far in zip(means, reach, strict=True))
                for sign in (-1, 1)
            ]
            sizes = "-".join(ends)
        result.block("image sizes are normally distributed: --image-sizes has a size, or a range")
        result.differ("image-size-distribution", "a range with the same variance")
    result.put("--dataset-name", "random-mm")
    result.put("--images", given.get("--image-batch-size", "1"))
    result.put("--image-sizes", sizes)
    result.put("--image-format", given.get("--image-format", "png").lower())
    result.differ("image-content", "random colors; AIPerf resizes photographs, which are smaller")


def _file(given: Given, result: Translation, maximum: str) -> None:
    """Send a file."""
    kind, path = given.get("--custom-dataset-type", "single_turn"), given.get("--input-file")
    if "--scenario" in given:
        _scenario(given, result)
    elif kind in TRACES:
        _trace(given, result, path, TRACES[kind])
    elif kind in AGENTS:
        result.put("--dataset-name", "agentic")
        result.put("--trace-format", AGENTS[kind])
        result.put("--dataset-path", path)
    else:
        _rows(given, result, kind, path, maximum)


def _rows(given: Given, result: Translation, kind: str, path: str, maximum: str) -> None:
    result.put("--dataset-name", "jsonl")
    result.put("--dataset-path", path)
    if kind == "multi_turn":
        result.put("--turns", "all")
    if kind not in ("single_turn", "multi_turn"):
        result.block(f"--custom-dataset-type {kind}: convert it to the rows of jsonl")
    else:
        result.block(
            f"rows of {kind} have text, or turns: convert them to the rows of jsonl, with "
            "prompt or messages"
        )
    answers = _lengths(given, maximum)[1]
    if answers:
        result.put("--custom-output-len", answers)
    else:
        result.differ("no-max-tokens", "rows without output_tokens ask for 256 tokens")


def _trace(given: Given, result: Translation, path: str, form: str) -> None:
    result.put("--dataset-name", "trace")
    result.put("--trace-format", form)
    result.put("--dataset-path", path)
    if "--isl-block-size" in given:
        result.put("--trace-block-size", given.get("--isl-block-size"))
    row = _first_row(path)
    if row is not None and "messages" in row:
        result.put("--dataset-name", "jsonl")
        result.drop("--trace-format")
        result.block("its rows have messages: convert them to the rows of jsonl")
    if row is None or "session_id" in row:
        result.differ(
            "sessions",
            "rows with a session_id are turns that wait for each other in "
            "AIPerf; a trace has no sessions here",
        )
    untimed = "timestamp" not in row if row else bool(re.search("no[-_]?(schedule|time)", path))
    if "--fixed-schedule" not in given and (untimed or (row is None and "--request-rate" in given)):
        result.put("--trace-times", "ignore")
    elif "--fixed-schedule" not in given:
        result.leave(
            path,
            "if its first row has no timestamp, AIPerf ignores times: add --trace-times ignore",
        )


def _first_row(path: str) -> dict[str, Any] | None:
    """Return the first row of a file, if it is on this machine."""
    try:
        with Path(path).open("rb") as file:
            row = orjson.loads(file.readline())
    except (OSError, ValueError):
        return None
    return row if isinstance(row, dict) else None


def _scenario(given: Given, result: Translation) -> None:
    result.block(
        f"--scenario {given.get('--scenario')} has rules of its own: it primes each trajectory, "
        "and ramps the number of sessions in flight"
    )
    result.put("--dataset-name", "agentic")
    result.put("--trace-format", "weka")
    result.put("--dataset-path", given.get("--input-file", "cc-traces-weka.jsonl"))
    low, high = (given.get(f"--trajectory-start-{end}-ratio", "0") for end in ("min", "max"))
    result.put("--trajectory-start", low if low == high else f"{low}:{high}")
    result.differ("sessions", "--users is the number of sessions in flight, without a ramp")
    if "--concurrency-ramp-duration" in given:
        result.differ("ramp", "--users begin at once")
    result.eos(ignored=True)


def _public(given: Given, result: Translation, maximum: str) -> None:
    name = given.get("--public-dataset")
    if name != "sharegpt":
        result.block(
            f"--public-dataset {name}: give its file with --dataset-path, or its name on "
            "the hub with --dataset-name hf"
        )
    result.put("--dataset-name", "sharegpt")
    result.put("--turns", "all")
    result.put("--history", "real")
    if answers := _lengths(given, maximum)[1]:
        result.put("--sharegpt-output-len", answers)
    result.differ(
        "sharegpt-selection", "which conversations are sent: AIPerf drops some by their lengths"
    )


def _repeated(given: Given, result: Translation) -> None:
    """Say that prompts are sent again, if they are made and fewer than the requests."""
    entries, sent = given.get(ENTRIES, DEFAULT_ENTRIES), result.value("--num-prompts")
    if TURNS in given or "--dataset-path" in result or "--public-dataset" in given:
        return
    if sent.isdigit() and entries.isdigit() and int(sent) <= int(entries):
        return
    result.differ(
        "prompts-repeat",
        f"{result.title} makes {entries} prompts and sends them again and again, so that a prefix "
        "cache hits; loadgen's are all distinct",
    )


# -- the load


def _load(given: Given, result: Translation, *, genai_perf: bool) -> None:
    rate, slots = given.get("--request-rate"), given.get("--concurrency")
    sessions = given.get("--session-concurrency")
    slots = slots or sessions
    if "--scenario" in given:
        if slots:
            result.put("--users", slots)
        slots = ""
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


def _ends(given: Given, result: Translation, slots: str, rate: str, *, genai_perf: bool) -> None:
    """Say how many requests are sent, or for how long."""
    count, time = given.get(COUNT), given.get(TIME)
    windows = given.get("--measurement-interval")
    if time:
        result.put("--duration", time)
        result.tail()
    if count:
        result.put("--num-prompts", count)
    elif "--conversation-num" in given:
        result.put("--num-prompts", product(given.get("--conversation-num"), given.get(TURNS, "1")))
    elif genai_perf and (windows or "--service-kind" in given) and not time:
        result.block(
            "no number of requests: genai-perf measures windows of --measurement-interval until "
            "three agree; give --duration or --num-prompts"
        )
        result.differ("ends-by-windows", "three windows, the least there can be")
        result.put("--duration", _three(windows or "10000"))
    elif not time and "trace" not in given.get("--custom-dataset-type") and not _is_file(given):
        result.put("--num-prompts", _default_count(slots if not rate else ""))


def _is_file(given: Given) -> bool:
    return "--input-file" in given or "--fixed-schedule" in given or "--scenario" in given


def _default_count(slots: str) -> str:
    if varies(slots):
        return product(slots, "2")
    return str(max(10, 2 * int(slots))) if slots.isdigit() else "10"


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
    if not time or any(map(varies, (ramp, time))):
        result.block(
            "--concurrency-ramp-duration: a ramp needs the length of the run; write "
            f"--concurrency-profile 1-{slots}@{ramp}s,{slots}@TIME"
        )
        result.put("--max-concurrency", slots)
        return
    rest = float(time) - float(ramp)
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
            "warm-ups have prompts of their own; AIPerf's are the first ones of the run",
        )
    result.save(given.get("--artifact-dir"), given.get("--profile-export-file"))


def _limit(word: str) -> str:
    name, _, value = word.partition(":")
    return f"{METRICS.get(name, name)}:{value}"


AIPERF = Tool("AIPerf", ("aiperf profile", "aiperf"), FLAGS, finish)
GENAI = Tool(
    "genai-perf",
    ("genai-perf profile", "genai-perf"),
    GENAI_PERF,
    partial(finish, genai_perf=True),
)
