"""The prompts of commands of AIPerf and genai-perf: made ones, files, and published data sets."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadgen.cli.translate.flag_table import Given
from loadgen.cli.translate.shell_words import number, product
from loadgen.cli.translate.translation import POOLING, Translation, length, seconds, whole

INPUT, DEVIATION, OUTPUT = "--isl", "--isl-stddev", "--osl"
ENTRIES, DEFAULT_ENTRIES, DEFAULT_INPUT = "--num-dataset-entries", "100", "550"
TURNS, DELAY = "--conversation-turn-mean", "--conversation-turn-delay-mean"
TRACES = {"mooncake_trace": "mooncake", "bailian_trace": "mooncake", "burst_gpt_trace": "burstgpt"}
AGENTS = {"weka_trace": "weka", "tracelab_trace": "tracelab"}
SIGMAS = 3**0.5  # a range of so many deviations on both sides has the variance of the normal


def translate(given: Given, result: Translation, api: str, maximum: str) -> None:
    """Translate what asks for the prompts.

    Args:
        given: The flags.
        result: What to add to it.
        api: The name of loadgen's API.
        maximum: The maximum of tokens among the fields of the body; "" for none.
    """
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
        if count != "0" and prefix != "0":
            result.put("--prefix-buckets", f"{count}x{prefix}")
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
        if "--turns" not in result:  # where it is a system message, too
            result.differ("system-prompt", "the shared text begins the prompt, in one message")
    result.put(sent, prompts)
    if api in POOLING:
        pass
    elif answers:
        result.put(answer, answers)
    else:
        result.unbounded()


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
        sizes = _range((height, width), spread) or sizes
        result.block("image sizes are normally distributed: --image-sizes has a size, or a range")
        result.differ("image-size-distribution", "a range with the same variance")
    result.put("--dataset-name", "random-mm")
    result.put("--images", given.get("--image-batch-size", "1"))
    result.put("--image-sizes", sizes)
    result.put("--image-format", given.get("--image-format", "png").lower())
    result.differ("image-content", "random colors; AIPerf resizes photographs, which are smaller")


def _range(means: Sequence[str], spread: Sequence[str]) -> str:
    """Write the range of sizes that has the variance of a normal; "" if one is unknown."""
    sides = [
        (number(mean), number(deviation)) for mean, deviation in zip(means, spread, strict=True)
    ]
    known = [(mean, deviation) for mean, deviation in sides if None not in (mean, deviation)]
    if len(known) < len(sides):
        return ""
    ends = [
        "x".join(
            str(round(mean) + sign * round(deviation * SIGMAS))
            for mean, deviation in known
            if mean is not None and deviation is not None
        )
        for sign in (-1, 1)
    ]
    return "-".join(ends)


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
    answers = _lengths(given, maximum)[1]
    if ":" in answers:
        result.block(f"answers of the lengths {answers} to the rows of a file: all have one length")
        answers = answers.split(":")[1]
    if answers:
        result.put("--custom-output-len", answers)
    elif result.value("--backend") not in POOLING:
        result.unbounded()


def _trace(given: Given, result: Translation, path: str, form: str) -> None:
    result.put("--dataset-name", "trace")
    result.put("--trace-format", form)
    result.put("--dataset-path", path)
    if given.get("--custom-dataset-type") == "bailian_trace":  # times in s, blocks of 16 tokens
        result.put("--trace-time-unit", "1")
        result.put("--trace-block-size", "16")
    if "--isl-block-size" in given:
        result.put("--trace-block-size", given.get("--isl-block-size"))
    row = _first_row(path)
    if row is not None and "messages" in row:
        result.drop("--trace-format")
        result.block(
            "its rows have messages: loadgen dataset --from-log makes a trace of them, with "
            "--trace-time-unit 1ms"
        )
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
            row = json.loads(file.readline())
    except (OSError, ValueError):
        return None
    return row if isinstance(row, dict) else None


def _scenario(given: Given, result: Translation) -> None:
    result.block(
        f"--scenario {given.get('--scenario')} has rules of its own: it primes each trajectory, "
        "and ramps the number of sessions in flight; its idle gaps, cache-bust prefixes and "
        "coverage are AIPerf's own, so what loadgen measures is no submission"
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


def say_repeated(given: Given, result: Translation) -> None:
    """Say that prompts are sent again, if they are made and fewer than the requests."""
    entries, sent = given.get(ENTRIES, DEFAULT_ENTRIES), result.value("--num-prompts")
    if TURNS in given or "--dataset-path" in result or "--public-dataset" in given:
        return
    if sent.isdigit() and entries.isdigit() and int(sent) <= int(entries):
        return
    result.differ(
        "prompts-repeat",
        f"{result.title} makes {entries} prompts and sends them again and again, so that a prefix "
        f"cache hits; loadgen's are all distinct, unless --distinct-prompts {entries} is given",
    )
