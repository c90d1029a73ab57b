"""Files of inference-perf: a load of stages, an API, a server and a data set.

Its constant load is not even: exponential gaps are stretched so that all requests of a stage fill
it. A length outside its bounds is moved to the bound.
"""

import json
from typing import Any

from loadgen.cli.translate.flag_table import Given, Tool, flags_of
from loadgen.cli.translate.translation import (
    CHAT,
    COMPLETIONS,
    Translation,
    bounded,
    read_yaml,
    swept,
)

APIS = {"completion": COMPLETIONS, "chat": CHAT, "anthropic_messages": "anthropic"}
SIZES = {"360p": "360x640", "480p": "480x854", "720p": "720x1280", "1080p": "1080x1920"}
SIZES |= {"1440p": "1440x2560", "4k": "2160x3840"}
WORKER_SLOTS = 100  # load.worker_max_concurrency
Setting = dict[str, Any]


def in_file(text: str) -> dict[str, list[str]]:
    """Return the settings of a file by their paths, as YAML; a distribution stays whole."""
    return dict(_flat(read_yaml(text), "--"))


def _flat(values: Setting, path: str) -> list[tuple[str, list[str]]]:
    items = []
    for key, value in values.items():
        name = f"{path}{key}"
        deep = isinstance(value, dict) and value and name.count(".") < 2
        if deep and not name.endswith(("distribution", "prefix", "headers", "sweep", "replay")):
            items += _flat(value, f"{name}.")
        elif value is not None:
            items.append((name, [value if isinstance(value, str) else json.dumps(value)]))
    return items


def finish(given: Given, result: Translation) -> None:
    """Translate what the settings of a file say together."""
    if path := given.get("--config_file"):
        result.block(f"the settings are in a file: `loadgen translate {path}`")
    api = APIS.get(given.get("--api.type", "completion"), CHAT)
    result.serve([given.get("--server.base_url")], api)
    if not _value(given, "--api.streaming", default=False):
        result.put("--disable-stream")
    if headers := _value(given, "--api.headers", default={}):
        result.put("--header", *(f"{name}={value}" for name, value in headers.items()))
    _data(given, result)
    result.eos(ignored=_value(given, "--server.ignore_eos", default=True))
    _load(given, result)
    if _value(given, "--report.request_lifecycle.per_request", default=False):
        result.put("--records", "records.jsonl")


def _value(given: Given, name: str, *, default: Any) -> Any:
    return read_yaml(given.get(name)) if name in given else default


# -- the prompts


def _data(given: Given, result: Translation) -> None:
    kind = given.get("--data.type", "mock")
    if kind in ("random", "synthetic"):
        for side in ("input", "output"):
            law = _value(given, f"--data.{side}_distribution", default={})
            result.put(f"--random-{side}-len", _length(law, result))
        if kind == "synthetic":
            result.differ(
                "prompt-text", "words of loadgen's own, in place of a text of inference-perf's"
            )
        if image := _value(given, "--data.multimodal.image", default={}):
            _images(image, result)
    elif kind.endswith("_replay"):
        _replay(given, result, kind)
    elif kind == "shared_prefix":
        _shared_prefix(_value(given, "--data.shared_prefix", default={}), result)
    else:
        _published(given, result, kind)


def _length(law: Any, result: Translation) -> str:
    """Write a distribution of lengths."""
    if not isinstance(law, dict):
        return str(law)
    law = dict(law)
    if "std" in law:
        result.differ(
            "std",
            "std is no field of today's inference-perf (it is std_dev): releases "
            "that ignore it draw with 200",
        )
        law["std_dev"] = law.pop("std")
    low, high = law.get("min", 10), law.get("max", 1024)
    mean, form = law.get("mean", 512), law.get("type", "normal")
    spread = law["variance"] ** 0.5 if law.get("variance") is not None else law.get("std_dev", 200)
    if form == "fixed":
        return f"{mean:g}"
    if low == high:
        return f"{low:g}"
    if form == "uniform":
        return f"{low:g}:{high:g}"
    if form not in ("normal", "lognormal"):
        result.block(f"lengths of a {form} distribution; give a list in a file (@FILE)")
    if form == "lognormal":
        return f"lognormal:{mean:g}:{spread:g}:{low:g}:{high:g}"
    return bounded(result, *(f"{number:g}" for number in (mean, spread, low, high)))


def _shared_prefix(data: Setting, result: Translation) -> None:
    groups = data.get("num_groups", data.get("num_unique_system_prompts", 10))
    each = data.get("num_prompts_per_group", data.get("num_users_per_system_prompt", 10))
    prefix = _length(data.get("system_prompt_len", 100), result)
    prompt = _length(data.get("question_distribution") or data.get("question_len", 50), result)
    answer = _length(data.get("output_distribution") or data.get("output_len", 50), result)
    if "seed" in data:
        result.put("--seed", str(data["seed"]))
    if media := data.get("multimodal"):
        result.block(
            f"images that belong to a shared prefix, one of {groups}: random-mm has images of "
            "its own in each prompt, and prefix_repetition none"
        )
        named = ("image", "video", "audio")
        _images(
            media.get("image") or {key: media[key] for key in media if key not in named}, result
        )
        result.differ("image-sharing", "each prompt has images of its own")
        result.put("--random-prefix-len", prefix)
        result.put("--random-input-len", prompt)
        result.put("--random-output-len", answer)
    elif data.get("enable_multi_turn_chat"):
        result.put("--dataset-name", "multi_turn")
        result.put("--turns", str(each))
        result.put("--prefix-buckets", f"{groups}x{prefix}")
        result.differ(
            "sessions",
            "a rate is that of sessions, whose turns follow each other; that "
            "of inference-perf is the rate of requests",
        )
        result.put("--random-input-len", prompt)
        result.put("--random-output-len", answer)
    elif prefix == "0":
        result.put("--random-input-len", prompt)
        result.put("--random-output-len", answer)
        _say_repeated(result, groups, each)
    else:
        result.put("--dataset-name", "prefix_repetition")
        result.put("--prefix-repetition-num-prefixes", str(groups))
        result.put("--prefix-repetition-prefix-len", prefix)
        result.put("--prefix-repetition-suffix-len", prompt)
        result.put("--prefix-repetition-output-len", answer)
        _say_repeated(result, groups, each)


def _say_repeated(result: Translation, groups: Any, each: Any) -> None:
    result.differ(
        "prompts-repeat",
        f"{groups} x {each} prompts are made, and sent again and again; loadgen's are all "
        "distinct, unless --distinct-prompts says how many",
    )


def _replay(given: Given, result: Translation, kind: str) -> None:
    """Replay recorded sessions, or conversations that are made."""
    data = _value(given, f"--data.{kind}", default={})
    if kind == "conversation_replay":
        result.block("conversation_replay makes conversations with tool calls by rules of its own")
        result.put("--dataset-name", "multi_turn")
        turns = data.get("turns_per_conversation") or {}
        result.put("--turns", f"{turns.get('mean', 3):g}")
        result.put("--random-prefix-len", str(data.get("shared_system_prompt_len", 8359)))
        for side in ("input", "output"):
            law = data.get(f"{side}_tokens_per_turn") or {}
            result.put(f"--random-{side}-len", _length(law, result))
        return
    form = kind.partition("_")[0]
    result.block(f"{kind} sends recorded sessions by rules of its own: how many, and their pauses")
    result.put("--dataset-name", "agentic")
    result.put("--trace-format", form)
    sources = data.get("trace_files") or [
        data.get("trace_directory") or data.get("hf_dataset_path")
    ]
    result.put("--dataset-path", str(sources[0] or f"{form}.jsonl"))


def _images(image: Setting, result: Translation) -> None:
    count = image.get("count") or {"type": "fixed", "mean": 1}
    if not isinstance(count, dict):
        count = {"type": "fixed", "mean": count}
    result.put("--dataset-name", "random-mm")
    result.put("--images", _length(count, result))
    sizes = image.get("resolutions", "1080p")
    listed = sizes if isinstance(sizes, list) else [{"resolution": sizes}]
    texts = [
        _size(each["resolution"]) + (f":{each['weight']:g}" if len(listed) > 1 else "")
        for each in listed
    ]
    result.put("--image-sizes", ",".join(texts))
    if image.get("insertion_point") == 0:
        result.put("--image-position", "first")
    result.differ("image-content", "random colors, as JPEG")


def _size(size: Any) -> str:
    return f"{size['height']}x{size['width']}" if isinstance(size, dict) else SIZES.get(size, size)


def _published(given: Given, result: Translation, kind: str) -> None:
    if kind.lower() == "sharegpt":
        result.put("--dataset-name", "sharegpt")
        result.block(
            "ShareGPT filtered by the lengths of prompt and answer: loadgen's rule for "
            "sharegpt has other bounds, which are no flags"
        )
        result.differ("sharegpt-selection", "prompts of 4 to 1024 tokens, and totals of up to 2048")
    else:
        result.block(f"data.type {kind}: give its rows with --dataset-name hf or jsonl")
        result.put("--dataset-name", "hf")
    if path := given.get("--data.path"):
        result.put("--dataset-path", path)


# -- the load


def _load(given: Given, result: Translation) -> None:
    kind = given.get("--load.type", "constant")
    stages = _value(given, "--load.stages", default=[])
    if kind == "trace_session_replay" and stages:
        if users := stages[0].get("concurrent_sessions"):
            result.put("--users", str(users))
        if len(stages) > 1:
            result.block(f"{len(stages)} stages: give one command for each; this is the first")
        return
    if not stages or kind not in ("constant", "poisson", "concurrent"):
        if "--load.sweep" not in given:
            result.block(f"load.type {kind}, {len(stages)} stages: give --request-rate")
        return
    if kind == "concurrent":
        levels, counts = (
            [str(stage.get(key)) for stage in stages]
            for key in ("concurrency_level", "num_requests")
        )
        swept(result, levels, counts)
        return
    _rates(result, kind, stages)
    if {"--load.num_workers", "--load.worker_max_concurrency"} & {*given}:
        workers = _value(given, "--load.num_workers", default=None)
        slots = _value(given, "--load.worker_max_concurrency", default=WORKER_SLOTS)
        if workers:
            result.put("--max-concurrency", str(workers * slots))
        else:
            result.differ(
                "cap",
                f"each worker has at most {slots} requests in flight, and there is "
                "a worker for each CPU",
            )


def _rates(result: Translation, kind: str, stages: list[Setting]) -> None:
    """Ask for a run at the rate of each stage."""
    if len(stages) > 1 and stages[0]["duration"] != stages[1]["duration"]:
        first, *stages = stages
        result.block(
            f"its first stage, {first['rate']:g} requests/s for {first['duration']} s, has "
            "another length: give it as a run of its own before, as a warm-up"
        )
    rates = [f"{stage['rate']:g}" for stage in stages]
    times = [stage["duration"] for stage in stages]
    result.put("--request-rate", ",".join(rates))
    if len(set(times)) > 1:
        result.block(
            "stages of several lengths: give one command for each, or --rate-profile for "
            "one run of all"
        )
    if kind == "constant":
        result.differ(
            "arrivals-normalised",
            "gaps are exponential (--burstiness 1), stretched so "
            "that rate x duration requests fill a stage exactly",
        )
    if len(stages) == 1 and kind == "constant":
        result.put("--num-prompts", f"{int(stages[0]['rate'] * times[0])}")
    else:
        result.put("--duration", f"{times[0]:g}")


INFERENCE_PERF = Tool(
    "inference-perf",
    ("inference-perf",),
    flags_of("inference-perf"),
    finish,
    in_file,
    ("load", "server", "api", "data"),
)
