"""Commands of guidellm 0.2 to 0.8, and its scenario files.

0.3 sends text completions, later releases chats. `guidellm run` (from 0.7 on) takes its settings as
KIND=...,KEY=VALUE. All bound a length drawn outside by moving it to the bound.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from loadgen.cli.translate.flag_table import Given, Tool, flags_of
from loadgen.cli.translate.shell_words import is_variable
from loadgen.cli.translate.translation import (
    CHAT,
    COMPLETIONS,
    Translation,
    bounded,
    read_yaml,
    swept,
)

APIS = {
    "chat_completions": CHAT,
    "text_completions": COMPLETIONS,
    "/v1/chat/completions": CHAT,
    "/v1/completions": COMPLETIONS,
    "/v1/responses": "openai-responses",
    "/v1/embeddings": "openai-embeddings",
    "responses": "openai-responses",
    "embeddings": "openai-embeddings",
    "/pooling": "vllm-pooling",
}
FORMS = {CHAT: "chat_completions", COMPLETIONS: "text_completions"}  # of the body, in 0.3
CAP = "512"
COLUMNS = ("text_column", "prompt_column", "prompt")
TRACES = ("trace_synthetic", "mooncake")
TRACE_COLUMNS = {
    "time": "timestamp_column",
    "input": "prompt_tokens_column",
    "output": "output_tokens_column",
    "blocks": "hash_ids_column",
}
SCENARIOS = {  # that guidellm itself has
    "chat": "prompt_tokens=512,prompt_tokens_stdev=128,prompt_tokens_min=1,prompt_tokens_max=1024,"
    "output_tokens=256,output_tokens_stdev=64,output_tokens_min=1,output_tokens_max=1024",
    "rag": "prompt_tokens=4096,prompt_tokens_stdev=512,prompt_tokens_min=2048,"
    "prompt_tokens_max=6144,output_tokens=512,output_tokens_stdev=128,output_tokens_min=1,"
    "output_tokens_max=1024",
}


def finish(given: Given, result: Translation) -> None:
    """Translate what the flags of a command say together."""
    backend = _fields(given.get("--backend"))
    backend |= _fields(given.get("--backend-kwargs"))
    scenario = given.get("--scenario")
    if scenario and scenario not in SCENARIOS:
        result.block(f"--scenario {scenario}: give the file itself to `loadgen translate`")
    old = "--rate-type" in result.written and "--profile" not in result.written
    typed = result.written
    is_run = "run" in given or ("run" in typed and "benchmark" not in typed)
    new = is_run or "target" in backend or "--constraint" in given
    form = backend.get("request_format") or given.get("--request-type")
    api = APIS.get(str(form), COMPLETIONS if old else CHAT)
    if form and str(form) not in APIS:
        result.block(f"requests of {form} are not supported")
    result.serve([str(backend.get("target") or given.get("--target"))], api)
    _backend(backend, result, api)
    _named(given, result, api, new=new, old=old)
    profile = _fields(given.get("--profile", "sweep"))
    _data(given, result, api)
    limits = [_fields(text) for text in given.all("--constraint")]
    _end(given, result, limits)
    _load(given, result, profile, new=new, old=old)
    _override(given, result)
    _runs(given, result)
    _outputs(given, result)


def _fields(text: str) -> dict[str, Any]:
    """Read settings: JSON, or KEY=VALUE,KEY=VALUE, where a word alone is the kind."""
    if text.lstrip().startswith(("{", "[")):
        value = read_yaml(text)
        return value if isinstance(value, dict) else {}
    fields: dict[str, Any] = {}
    for item in re.split(r",(?![^{\[]*[}\]])", text) if text else []:
        name, equals, value = item.partition("=")
        *path, last = name.strip().split(".")
        if equals:
            inner = fields
            for part in path:
                inner = inner.setdefault(part, {})
            inner[last] = value.strip()
        else:
            fields["kind"] = name.strip()
    return fields


def _backend(fields: Mapping[str, Any], result: Translation, api: str) -> None:
    if "model" in fields:
        result.put("--model", str(fields["model"]))
    if "api_key" in fields:
        result.put("--api-key", str(fields["api_key"]))
    if "timeout" in fields:
        result.put("--timeout", str(fields["timeout"]))
    stream = str(fields.get("stream", True)).lower()
    if stream == "false":
        result.put("--disable-stream")
    elif stream != "true":
        result.leave(stream, "says whether answers are streamed: --disable-stream if it is false")
    if headers := fields.get("headers"):
        result.put("--header", *(f"{name}={value}" for name, value in headers.items()))
    extras = fields.get("extras") or {}
    result.body(extras.get("body", extras) if isinstance(extras, dict) else {})
    body = fields.get("extra_body") or {}
    result.body(body.get(FORMS.get(api, ""), {}) if body.keys() & {*FORMS.values()} else body)
    if str(fields.get("kind", "openai_http")) not in ("openai_http", "openai"):
        result.put("--engine", "vllm")
        result.block(
            f"backend {fields['kind']}: loadgen measures servers over HTTP; start it with "
            "--engine vllm"
        )


def _named(given: Given, result: Translation, api: str, *, new: bool, old: bool) -> None:
    """Name the tokenizer and the seed; with both, the prompts of 0.5 can be made exactly."""
    tokenizer = _fields(given.get("--processor"))
    name = str(tokenizer.get("model") or tokenizer.get("kind") or "")
    if name:
        result.put("--tokenizer", name)
    seed = given.get("--random-seed")
    if seed:
        result.put("--seed", str(_fields(seed).get("value", seed)))
    if name and not new and not old and "prompt_tokens" in given.get("--data"):
        result.put("--dataset-rule", "guidellm-0.5")


# -- the prompts


def _data(given: Given, result: Translation, api: str) -> None:
    text = given.get("--data") or SCENARIOS.get(given.get("--scenario"), "")
    data = _fields(result.environment.get(text.strip("${}"), text))
    if len(given.all("--data")) > 1:
        result.block("several --data: one data set is sent")
    if is_variable(str(data.get("kind", ""))):
        result.block(f"--data {data['kind']}: what it holds is not seen; give its value")
        return
    if not data:
        result.block("no --data: give the prompts")
        return
    if data.get("kind") in TRACES:
        _trace(given, result, data)
        return
    if "prompt_tokens" not in data:
        _file(given, result, data)
        return
    prompts, answers = (_length(data, side, result) for side in ("prompt", "output"))
    turns = str(data.get("turns", "1"))
    buckets = data.get("prefix_buckets") or []
    if not buckets and data.get("prefix_tokens"):
        buckets = [{key: data[key] for key in ("prefix_tokens", "prefix_count") if key in data}]
    if turns != "1" or buckets:
        _sessions(result, turns, buckets)
    sent, asked = "--random-input-len", "--random-output-len"
    if buckets and turns == "1":
        sent, asked = "--prefix-repetition-suffix-len", "--prefix-repetition-output-len"
    result.put(sent, prompts)
    if api in ("openai-embeddings", "vllm-pooling"):
        return
    if answers:
        result.put(asked, answers)
        result.eos(ignored=True)
    else:
        result.unbounded()
        result.ended_by_eos()


def _length(data: Mapping[str, Any], side: str, result: Translation) -> str:
    """Return the length of the prompts or of the answers; "" if there is none."""
    mean, spread, low, high = (
        str(data.get(f"{side}_tokens{end}", "")) for end in ("", "_stdev", "_min", "_max")
    )
    if not spread and low and high:
        return low if low == high else f"{low}:{high}"
    return bounded(result, mean, spread, low, high) if mean else ""


def _sessions(result: Translation, turns: str, buckets: list[dict[str, Any]]) -> None:
    result.put("--dataset-name", "multi_turn" if turns != "1" else "prefix_repetition")
    if turns != "1":
        result.put("--turns", turns)
    kinds = [
        f"{bucket.get('prefix_count', 1)}x{bucket['prefix_tokens']}"
        + (f":{bucket['bucket_weight']}" if "bucket_weight" in bucket and len(buckets) > 1 else "")
        for bucket in buckets
    ]
    if kinds:
        result.put("--prefix-buckets", ",".join(kinds))
        result.differ(
            "prefix-choice",
            "guidellm draws the prefix of each prompt; those of loadgen are equally frequent",
        )


def _trace(given: Given, result: Translation, data: Mapping[str, Any]) -> None:
    """Send a trace: at its times with the profile replay, else without them."""
    result.put("--dataset-name", "trace")
    result.put("--trace-format", "mooncake")
    result.put("--dataset-path", str(data.get("path", "")))
    columns = [
        f"{field}={data[key]}"
        for field, key in TRACE_COLUMNS.items()
        if data.get(key, field) != field and key in data
    ]
    if columns:
        result.put("--trace-column", *columns)
    if size := data.get("hash_id_block_size"):
        result.put("--trace-block-size", str(size))
    result.put("--trace-times", "ignore")
    result.eos(ignored=True)


def _file(given: Given, result: Translation, data: Mapping[str, Any]) -> None:
    source = str(data.get("path") or data.get("source") or data.get("kind") or "")
    ending = source.rpartition(".")[2].lower()
    mapper = _fields(given.get("--data-column-mapper"))
    columns = mapper.get("column_mappings", mapper)
    if ending in ("jsonl", "csv"):
        result.put("--dataset-name", ending)
        result.block(
            f"{source}: rows are those of loadgen's {ending}, with prompt and "
            "output_tokens; guidellm finds columns by many names"
        )
    else:
        result.put("--dataset-name", "text" if ending in ("txt", "text") else "hf")
    result.put("--dataset-path", source)
    options = _fields(given.get("--data-args")) | (data.get("load_kwargs") or {})
    for key, flag in (("split", "--hf-split"), ("name", "--hf-subset")):
        if key in options:
            result.put(flag, str(options[key]))
    columns = options | columns
    if column := next((columns[key] for key in COLUMNS if key in columns), None):
        result.put("--hf-column", f"prompt={column}")
    result.unbounded()
    result.differ("output-column", "a row's output_tokens_count is its maximum in guidellm")
    result.ended_by_eos()


# -- the load


def _end(given: Given, result: Translation, limits: list[dict[str, Any]]) -> None:
    values = {str(limit.get("kind")): limit for limit in limits}
    count = given.get("--max-requests") or values.get("max_requests", {}).get("count", "")
    time = given.get("--max-seconds") or values.get("max_duration", {}).get("seconds", "")
    errors = given.get("--max-errors") or values.get("max_errors", {}).get("count", "")
    share = given.get("--max-error-rate") or values.get("max_error_rate", {}).get("rate", "")
    if count:
        result.put("--num-prompts", str(count))
    if time:
        result.put("--duration", str(time))
        result.tail()
    stops = [f"errors>={errors}"] if errors else []
    stops += [f"error_rate>{share}"] if share else []
    if stops:
        result.put("--stop-when", ",".join(stops))
    if not count and not time:
        result.block("no limit: the run ends when the prompts are used up (1000 of synthetic data)")
        result.put("--num-prompts", "1000")


def _load(
    given: Given, result: Translation, profile: Mapping[str, Any], *, new: bool, old: bool
) -> None:
    kind = str(profile.get("kind", "sweep"))
    levels = _levels(profile.get("rate") or profile.get("streams") or given.all("--rate") or "")
    cap = str(profile.get("max_concurrency") or "")
    if kind in ("concurrent", "synchronous"):
        result.put("--max-concurrency", levels if kind == "concurrent" else "1")
    elif kind == "throughput":
        result.put("--max-concurrency", cap or levels or CAP)
    elif kind in ("constant", "poisson", "async"):
        if not levels and "--override" not in given:
            result.block(f"profile {kind} has no rate: give --request-rate")
        result.put("--request-rate", levels)
        if kind != "poisson":
            result.put("--burstiness", "inf")
        _cap(result, cap, exact="--dataset-rule" in result, limited=not new and not old)
    elif kind == "replay":
        if result.value("--dataset-name") != "trace":
            result.block("replay: give the trace with --dataset-name trace")
        elif "--trace-times" in result:
            result.drop("--trace-times")
            result.put("--trace-time-unit", str(profile.get("time_scale", "1")))
    else:
        _sweep(result)
    if rampup := given.get("--rampup") or profile.get("rampup_duration"):
        result.block(f"rampup {rampup}: write it as --rate-profile or --concurrency-profile")
    if "warmup" in profile:
        window = GUIDELLM.flag("--warmup")
        assert window is not None
        result.differ("warm-up-is-a-window", f"warmup: {window.here}")
    if timeout := given.get("--request-timeout"):
        result.put("--timeout", timeout)


def _levels(values: Any) -> str:
    items = values if isinstance(values, list) else [values]
    return ",".join(str(item).strip("[] ").replace(" ", "") for item in items)


def _cap(result: Translation, cap: str, *, exact: bool, limited: bool) -> None:
    if cap or (limited and exact):
        result.put("--max-concurrency", cap or CAP)
    elif limited:
        result.differ(
            "cap-512",
            "guidellm keeps at most 512 requests in flight: --max-concurrency 512 does so, too",
        )


def _sweep(result: Translation) -> None:
    result.block(
        "a sweep finds its rates itself: use `loadgen search`, or --request-rate with your "
        "own rates"
    )
    result.differ("sweep", "rates of loadgen's choice")
    result.put("--request-rate", "1,2,4,8")
    result.put("--burstiness", "inf")


def _override(given: Given, result: Translation) -> None:
    """Make a run for each value of --override."""
    words = given.all("--override")
    for name, values in zip(words[::2], words[1::2], strict=False):
        if name in ("profile.rate", "profile.streams"):
            flag = "--request-rate" if name.endswith("rate") else "--max-concurrency"
            result.put(flag, _levels(values))
        else:
            result.block(f"--override {name}: give one command for each value")


def _runs(given: Given, result: Translation) -> None:
    """Make the runs of a scenario file that differ in their limits."""
    runs: list[dict[str, Any]] = json.loads(given.get("--benchmarks", "[]"))
    streams = [str(run.get("profile.streams", "")) for run in runs]
    counts = [str(value) for run in runs for key, value in run.items() if key.endswith("].count")]
    if runs and all(streams) and len(counts) == len(runs):
        result.drop("--max-concurrency", "--num-prompts")
        swept(result, streams, counts)
    elif runs:
        result.block(f"{len(runs)} runs with limits of their own: give one command for each")


def _outputs(given: Given, result: Translation) -> None:
    path = given.get("--output-path")
    files = [_fields(text) for text in given.all("--output")]
    for file in [{"kind": "", "path": path}, *files]:
        target = str(file.get("path") or "")
        if not target:
            continue
        if file.get("kind") == "html" or target.endswith(".html"):
            result.put("--html", target)
        elif file.get("kind") in ("csv", "yaml", "plot") or target.endswith((".csv", ".yaml")):
            result.leave(target, "the result is JSON; see `loadgen report` for CSV")
        elif target.endswith("/") or "." not in target.rpartition("/")[2]:
            result.save(folder=target)
        else:
            result.save(file=target)
    if folder := given.get("--output-dir"):
        result.save(folder=folder)


# -- scenario files


def in_file(text: str) -> dict[str, list[str]]:
    """Return the flags that ask for what a scenario file asks for."""
    root = read_yaml(text)
    if "spec" not in root:  # of 0.5: the flags by their names
        return {
            f"--{key.replace('_', '-')}": [str(item) for item in _listed(value)]
            for key, value in root.items()
        }
    spec = root["spec"]
    flags: dict[str, list[str]] = {"run": []}
    for key, flag in (("backend", "--backend"), ("profile", "--profile"), ("seed", "--seed")):
        if isinstance(spec.get(key), dict):
            flags[flag] = [json.dumps(spec[key])]
    data = spec.get("data") or []
    flags["--data"] = [json.dumps(each) for each in _listed(data)]
    runs = root.get("benchmarks") or []
    profile, limits = dict(spec.get("profile") or {}), list(spec.get("constraints") or [])
    _merge_runs(profile, limits, runs)
    flags["--profile"] = [json.dumps(profile)]
    flags["--constraint"] = [json.dumps(limit) for limit in limits]
    if len(runs) > 1 and any("constraints" in key for run in runs for key in run):
        flags["--benchmarks"] = [json.dumps(runs)]
    if tokenizer := spec.get("tokenizer"):
        flags["--tokenizer"] = [json.dumps(tokenizer)]
    return flags


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _merge_runs(
    profile: dict[str, Any], limits: list[dict[str, Any]], runs: list[dict[str, Any]]
) -> None:
    """Put the settings of the runs into those that they share: levels as lists, limits of the
    first run.
    """
    for run in runs:
        for key, value in run.items():
            limit = re.fullmatch(r"constraints?\[(\d+)\]\.(\w+)", key)
            if limit:
                limits[int(limit[1])].setdefault(limit[2], value)
            elif key.startswith("profile."):
                profile.setdefault(key.removeprefix("profile."), []).append(value)


GUIDELLM = Tool(
    "guidellm",
    ("guidellm benchmark run", "guidellm benchmark", "guidellm run", "guidellm"),
    flags_of("guidellm"),
    finish,
    in_file,
    ("spec", "benchmarks"),
)
