"""Commands of `evalscope perf`.

--number and --parallel count requests, or conversations with --multi-turn. Temperature 0 and 2048
tokens are its defaults, and are sent.
"""

from loadgen.cli.translate.flag_table import Given, Tool, flags_of
from loadgen.cli.translate.shell_words import has_variable, number, product
from loadgen.cli.translate.translation import CHAT, COMPLETIONS, POOLING, Translation, pairs, swept

APIS = {
    "openai": CHAT,
    "openai_responses": "openai-responses",
    "openai_response": "openai-responses",
    "responses": "openai-responses",
    "openai_embedding": "openai-embeddings",
    "embedding": "openai-embeddings",
    "openai_rerank": "vllm-rerank",
    "rerank": "vllm-rerank",
    "local": COMPLETIONS,
    "local_vllm": COMPLETIONS,
}
# Data sets of rows: the file of each, and the column of its prompts.
ROWS = {
    "openqa": ("open_qa.jsonl", "question"),
    "longalpaca": ("LongAlpaca-12k.json", "instruction"),
}
SPEED = {"speed_benchmark": "1,6144,14336,30720", "speed_benchmark_long": "63488,129024"}


def finish(given: Given, result: Translation) -> None:
    """Translate what the flags of a command say together."""
    url = given.get("--url", "http://127.0.0.1:8877/v1/chat/completions")
    name = given.get("--api", "openai")
    api = APIS.get(name, CHAT)
    if name not in APIS:
        result.block(f"--api {name} is not an API of loadgen")
    is_text = url.rstrip("/").endswith("/completions") and "chat/" not in url
    if api == CHAT and (is_text or "--tokenize-prompt" in given):
        api = COMPLETIONS
    if name.startswith("local"):
        result.put("--engine", "vllm")
        result.put("--backend", api)
        result.block(f"--api {name}: evalscope starts the model itself; here --engine does")
        result.differ("engine", "the server is started with vLLM's defaults")
    else:
        # The path of a chat may stand where evalscope asks another API.
        result.serve([url if api == CHAT else url.replace("/chat/completions", "")], api)
    if "--no-stream" in given and api not in POOLING:
        result.put("--disable-stream")
    answers = _answers(given)
    _data(given, result, api, answers)
    if api not in POOLING:
        _body(given, result)
    _load(given, result)
    result.save(given.get("--outputs-dir"))


def _answers(given: Given) -> str:
    values = [word for text in given.all("--max-tokens") for word in text.split()] or ["2048"]
    return values[0] if len(set(values)) == 1 else ":".join(values[:2])


def _body(given: Given, result: Translation) -> None:
    if "--temperature" not in given:
        result.put("--temperature", "0")
    if seed := given.get("--seed"):
        result.put("--seed", seed)
        result.body(pairs(f"seed:{seed}"))
    if least := given.get("--min-tokens"):
        result.body(pairs(f"min_tokens:{least}"))
    if "--n-choices" in given:
        result.body(pairs(f"n:{given.get('--n-choices')}"))
    if "--logprobs" in given:
        result.body({"logprobs": True})
    for flag, field in (("--stop", "stop"), ("--stop-token-ids", "stop_token_ids")):
        if values := given.all(flag):
            result.body({field: values})
    extra = given.get("--extra-args")
    if has_variable(extra) and not extra.startswith("{"):
        result.leave(extra, "holds further fields of the body, which are not seen here")
        if given.get("--min-tokens") and given.get("--min-tokens") == _answers(given):
            result.eos(ignored=True)  # answers have their full length either way
    elif extra:
        result.body(pairs(extra))
    result.ended_by_eos()


# -- the prompts


def _data(given: Given, result: Translation, api: str, answers: str) -> None:
    name = given.get("--dataset", "openqa")
    low, high = given.get("--min-prompt-length", "0"), given.get("--max-prompt-length", "131072")
    lengths = low if low == high else f"{low}:{high}"
    if name in ROWS:
        _rows(given, result, name, answers)
    elif name in SPEED:
        result.block(f"--dataset {name} sends prompts of fixed lengths, twice each, as completions")
        result.differ("prompts", f"random prompts of {SPEED[name]} tokens in turn")
        _random(result, SPEED[name], answers, api)
    elif name.endswith("multi_turn") and name.startswith("random"):
        result.put("--dataset-name", "multi_turn")
        _random(result, lengths, answers, api)
    elif name.startswith("random"):
        _random_of_a_kind(given, result, name, lengths, answers, api)
    elif name.startswith("share_gpt"):
        result.block(
            f"--dataset {name}: rows of swift/sharegpt have other fields; convert the file "
            "to ShareGPT's conversations"
        )
        result.put("--dataset-name", "sharegpt")
        result.put("--sharegpt-output-len", answers)
        result.put("--turns", given.get("--max-turns", "all") if "multi" in name else "1")
    elif name == "custom_multi_turn":
        result.block(
            "--number counts conversations of custom_multi_turn, whose turns are not known"
        )
        result.put("--dataset-name", "jsonl")
        result.put("--dataset-path", given.get("--dataset-path"))
        result.put("--custom-output-len", answers)
        result.put("--turns", given.get("--max-turns", "all"))
    elif name in ("line_by_line", "custom"):
        _lines(given, result, name, answers)
    else:
        result.block(f"--dataset {name} is not known here; write its prompts to a file for jsonl")
        result.put("--dataset-name", "jsonl")
        result.put("--dataset-path", given.get("--dataset-path", f"{name}.jsonl"))
        result.put("--custom-output-len", answers)
    if "--multi-turn" in given and "random" in name:
        _turns(given, result)


def _lines(given: Given, result: Translation, name: str, answers: str) -> None:
    path = given.get("--dataset-path")
    result.put("--dataset-name", "jsonl" if path.endswith(".jsonl") else "text")
    result.put("--dataset-path", path)
    result.put("--custom-output-len", answers)
    if name == "line_by_line":
        result.differ("lines", "lines of JSON are read as such; here the file is all jsonl or text")
    _say_filter(given, result)


def _random(result: Translation, lengths: str, answers: str, api: str) -> None:
    result.put("--random-input-len", lengths)
    if api not in POOLING:
        result.put("--random-output-len", answers)


def _random_of_a_kind(
    given: Given, result: Translation, name: str, lengths: str, answers: str, api: str
) -> None:
    _random(result, lengths, answers, api)
    if not given.is_zero("--prefix-length"):
        result.put("--random-prefix-len", given.get("--prefix-length"))
    if name == "random_vl":
        result.put("--dataset-name", "random-mm")
        result.put("--images", given.get("--image-num", "1"))
        sides = (given.get(f"--image-{side}", "224") for side in ("height", "width"))
        result.put("--image-sizes", "x".join(sides))
        result.put("--image-format", "png")
        result.differ("image-content", "random colors; evalscope draws shapes, which are smaller")
    elif name == "random_rerank":
        result.put("--dataset-name", "random-rerank")
    elif api == CHAT:
        result.put("--input-len-counts", "server")


def _rows(given: Given, result: Translation, name: str, answers: str) -> None:
    file, column = ROWS[name]
    if _say_filter(given, result):
        file = "filtered.jsonl"
    result.put("--dataset-name", "hf")
    result.put("--dataset-path", given.get("--dataset-path", file))
    result.put("--hf-column", f"prompt={column}")
    result.put("--hf-output-len", answers)
    result.put("--disable-shuffle")
    if "--dataset-path" not in given:
        result.differ(
            "download",
            f"{file} has to be on this machine; evalscope fetches it from ModelScope",
        )


def _say_filter(given: Given, result: Translation) -> bool:
    """Say that prompts are left out by their length; returns whether any are."""
    bounds = [flag for flag in ("--min-prompt-length", "--max-prompt-length") if flag in given]
    if bounds:
        unit = "tokens" if "--tokenizer-path" in given else "characters"
        result.block(
            f"{' and '.join(bounds)}: prompts of other lengths, in {unit}, are left out; "
            "loadgen has no filter by length: filter the file first"
        )
        result.differ("filter", "the file holds the prompts that are left")
    return bool(bounds)


def _turns(given: Given, result: Translation) -> None:
    low = given.get("--min-turns", "1")
    high = given.get("--max-turns", low)
    result.put("--dataset-name", "multi_turn")
    result.put("--turns", low if low == high else f"{low}:{high}")


# -- the load


def _load(given: Given, result: Translation) -> None:
    levels, counts, rates = (
        [word for text in given.all(flag) for word in text.split()]
        for flag in ("--parallel", "--number", "--rate")
    )
    levels = levels or ["1"]
    if len(given.all("--number")) == 0:
        counts = ["1000" if "speed" not in given.get("--dataset") else "8"] * len(levels)
        if "--duration" in given:
            counts = []
    turns = result.value("--turns")
    if "--multi-turn" in given and turns and turns != "all":
        counts = [_requests(count, turns) for count in counts]
    if "--open-loop" in given:
        _open(result, rates, counts)
    elif not counts or len(levels) != len(counts):
        result.put("--max-concurrency", ",".join(levels))
        result.drop("--num-prompts")
        if counts:
            result.put("--num-prompts", counts[0])
    else:
        swept(result, levels, counts)
    if rates and rates != ["-1"] and "--open-loop" not in given:
        result.put("--request-rate", ",".join(rates))
        _say_stretched(result)
    if "--duration" in given:
        result.tail()
    if not given.is_zero("--warmup-num"):
        _warm_up(given, result, counts)


def _requests(sessions: str, turns: str) -> str:
    low, _, high = turns.partition(":")
    if not high or not (low + high).isdigit():
        return product(sessions, low)
    return product(sessions, f"{(int(low) + int(high)) / 2:g}")


def _open(result: Translation, rates: list[str], counts: list[str]) -> None:
    result.put("--request-rate", ",".join(rates))
    _say_stretched(result)
    if len(rates) == 1 and counts:
        result.put("--num-prompts", counts[0])
        return
    times = {
        (number(count) or 0.0) / (number(rate) or 1.0)
        for count, rate in zip(counts, rates, strict=False)
    }
    if len(times) == 1 and all(times) and len(counts) == len(rates):
        result.put("--duration", f"{times.pop():g}")
    elif counts:
        result.put("--num-prompts", counts[0])
        result.block(
            "each rate has a number of requests of its own: give one command for each, or "
            "--duration, the same for all"
        )


def _say_stretched(result: Translation) -> None:
    result.differ(
        "arrivals-normalised",
        "evalscope stretches the gaps so that the last request is due at number / rate",
    )


def _warm_up(given: Given, result: Translation, counts: list[str]) -> None:
    warm_ups = given.get("--warmup-num")
    if 0 < (number(warm_ups) or 0) < 1 and counts:
        warm_ups = product(warm_ups, counts[0])
    result.put("--num-warmups", warm_ups)
    result.differ(
        "warm-up-overlaps",
        "evalscope's warm-ups share the slots with the measured "
        "requests; loadgen's end before the clock starts",
    )


EVALSCOPE = Tool("evalscope", ("evalscope perf",), flags_of("evalscope"), finish)
