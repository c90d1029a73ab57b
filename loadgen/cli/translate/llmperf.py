"""Commands of llmperf's token_benchmark_ray.py.

It counts tokens with Llama's tokenizer, draws normal lengths, and keeps threads busy until so many
requests have ended or the time is over.
"""

from loadgen.cli.translate.flag_table import Given, Tool, flags_of
from loadgen.cli.translate.shell_words import has_variable
from loadgen.cli.translate.translation import CHAT, Translation, length, pairs

SERVER, KEY = "OPENAI_API_BASE", "OPENAI_API_KEY"


def finish(given: Given, result: Translation) -> None:
    """Translate what the flags of a command say together."""
    result.serve([result.environment.get(SERVER) or f"${SERVER}"], CHAT)
    if KEY in result.environment:
        result.put("--api-key", result.environment[KEY])
    api = given.get("--llm-api", "openai")
    if has_variable(api):
        result.leave(api, "the API of OpenAI is meant here")
    elif api != "openai":
        result.block(f"--llm-api {api} is another API; only openai is HTTP here")
    result.put("--tokenizer", "hf-internal-testing/llama-tokenizer")
    result.differ("tokenizer", "llmperf counts with Llama's tokenizer, whatever the model is")
    result.differ(
        "prompt-text",
        "llmperf's prompts are lines of sonnets behind a fixed sentence of "
        "about 30 tokens; loadgen's are random words",
    )
    result.put("--random-input-len", _drawn(given, "input", "550", "150"))
    result.put("--random-output-len", _drawn(given, "output", "150", "80"))
    if parameters := given.get("--additional-sampling-params"):
        fields = pairs(parameters)
        result.body(fields)
        if "max_tokens" in fields:
            result.put("--random-output-len", str(fields["max_tokens"]).removeprefix("\1"))
    result.ended_by_eos()
    result.put("--num-prompts", given.get("--max-num-completed-requests", "10"))
    result.put("--duration", given.get("--timeout", "90"))
    result.put("--max-concurrency", given.get("--num-concurrent-requests", "10"))
    if metadata := given.get("--metadata"):
        result.put("--metadata", *metadata.split(","))
    result.save(given.get("--results-dir"))


def _drawn(given: Given, side: str, mean: str, deviation: str) -> str:
    values = (
        given.get(f"--{what}-{side}-tokens", default)
        for what, default in (("mean", mean), ("stddev", deviation))
    )
    return length(*values)


LLMPERF = Tool("llmperf", ("token_benchmark_ray.py",), flags_of("llmperf"), finish)
