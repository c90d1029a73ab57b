"""Data sets of the hub that `vllm bench serve` (0.33), `vllm-rs` and SGLang (0.5.23) know by name, as they read them.

Prompts, default lengths, splits and bounds are those of these tools. A function makes a prompt of a record.
"""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from loadgen.workload.datasets.hub.layout import Bounds, Layout, Record, asking
from loadgen.workload.image import part
from loadgen.workload.image_file import referred

SPEC_BENCH, SPEED_BENCH, LONGBENCH_V2 = "hemingkx/Spec-Bench", "nvidia/SPEED-Bench", "THUDM/LongBench-v2"
MASKED = "FULL BENCHMARK DATA SHOULD BE FETCHED"  # the beginning of texts that SPEED-Bench does not contain itself
REGION = "<|editable_region_start|>"  # where the part of a file begins that Zeta's answers repeat

EDIT = """Given a code file, please apply the change requests and generate the new file.

Original file:
```python
{code}
```

Change request:
{change_request}

Please generate the new code file in the "New file" section below."""
ZETA = (
    "### Instruction:\nYou are a code completion assistant and your task is to analyze user edits and then rewrite an "
    "excerpt that the user provides, suggesting the appropriate edits within the excerpt, taking into account the "
    "cursor location.\n\n### User Edits:\n\n{events}\n\n### User Excerpt:\n\n{input}\n\n### Response:\n\n"
)
CODE = "{input}\n\n{instruction} Just output the code, do not include any explanation."
CHOICES = "{context}\n\nQuestion: {question}\nA. {choice_A}\nB. {choice_B}\nC. {choice_C}\nD. {choice_D}\nAnswer:"


def _first_turn(record: Record) -> str:
    return str(record["turns"][0])


def _first_of_turn(record: Record) -> str:
    first = record["turns"][0][0]
    return str(first["content"] if isinstance(first, Mapping) else first)


def _speed_bench(record: Record) -> str | None:
    """Return the first turn of a prepared row, which has messages, or of a published one, which has turns."""
    if "messages" in record:
        return str(record["messages"][0]["content"])
    turns = record["turns"]
    usable = turns and turns[0] and not turns[0].startswith(MASKED) and not record.get("multiturn")
    return str(turns[0]) if usable else None


def _first_of_two(record: Record) -> str | None:
    turns = record["conversations"]
    return turns[0]["value"] if len(turns) >= 2 else None


def _system_and_question(record: Record) -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": record["system_prompt"]},
        {"role": "user", "content": record["question"]},
    ]


def _pictured(question: Callable[[Record], str]) -> Callable[[Record], list[dict[str, Any]]]:

    def messages(record: Record) -> list[dict[str, Any]]:
        content = [{"type": "text", "text": question(record)}, part(referred(record["images"][0]))]
        return [{"role": "user", "content": content}]

    return messages


_MATHS = Layout(asking(itemgetter("problem")), itemgetter("solution"), bounds=Bounds(2048, 32000))
_EDITS = Layout(asking(EDIT), output_len=4000, rendered=True)
_EXAM = Layout(
    asking(_system_and_question),
    itemgetter("output"),
    bounds=Bounds(1024, 2048, of_any_answer=True),
    special=False,
    rendered=True,
)
READING = Layout(asking("{context}\n\n{input}"), split=None)

KNOWN: Mapping[str, Layout] = {
    "philschmid/mt-bench": Layout(asking(_first_turn), output_len=256, rendered=True),
    "likaixin/InstructCoder": Layout(asking(CODE), output_len=200, rendered=True),
    "openai/openai_humaneval": Layout(asking(itemgetter("prompt")), output_len=256, split="test", rendered=True),
    "openai/gsm8k": Layout(asking(itemgetter("question")), output_len=256, subset="main", split="test", rendered=True),
    "Aeala/ShareGPT_Vicuna_unfiltered": Layout(
        asking(_first_of_two), lambda record: record["conversations"][1]["value"], bounds=Bounds(1024, 2048)
    ),
    "zed-industries/zeta": Layout(
        asking(ZETA),
        lambda record: record["output"][record["output"].find(REGION) :],
    ),
    **dict.fromkeys(("AI-MO/aimo-validation-aime", "AI-MO/NuminaMath-1.5", "AI-MO/NuminaMath-CoT"), _MATHS),
    **dict.fromkeys(("vdaita/edit_5k_char", "vdaita/edit_10k_char"), _EDITS),
    **dict.fromkeys(("mgoin/mlperf-inference-llama2-data", "mgoin/mlperf-inference-llama3.1-data"), _EXAM),
    **dict.fromkeys(("THUDM/LongBench", "zai-org/LongBench"), READING),
    LONGBENCH_V2: Layout(asking(CHOICES), output_len=10, by_buffer=False),
    "lmarena-ai/VisionArena-Chat": Layout(asking(_pictured(lambda record: record["conversation"][0][0]["content"]))),
    "lmarena-ai/vision-arena-bench-v0.1": Layout(asking(_pictured(_first_of_turn))),
    SPEC_BENCH: Layout(asking(_first_turn), output_len=256, rendered=True, by_buffer=False),
    SPEED_BENCH: Layout(
        asking(_speed_bench), output_len=4096, subset="qualitative", split=None, rendered=True, by_buffer=False
    ),
}
PICTURES, VIDEOS, SPEECH, TOOLS = (
    "images in a form that loadgen does not read",
    "videos",
    "recorded speech",
    "tools of each request",
)
NOT_SENT: Mapping[str, str] = {  # data sets that vLLM knows, and what loadgen cannot send of them
    **dict.fromkeys(("lmms-lab/LLaVA-OneVision-Data", "Lin-Chen/MMStar"), PICTURES),
    "yale-nlp/MMVU": VIDEOS,
    **dict.fromkeys(
        (
            *("openslr/librispeech_asr", "facebook/voxpopuli", "LIUM/tedlium", "edinburghcstr/ami"),
            *("speechcolab/gigaspeech", "kensho/spgispeech", "ArtificialAnalysis/Earnings22-Cleaned-AA"),
            "D4nt3/esb-datasets-earnings22-validation-tiny-filtered",
        ),
        SPEECH,
    ),
    "gorilla-llm/Berkeley-Function-Calling-Leaderboard": TOOLS,
}


def known_name(name: str) -> str | None:
    """Return the name of the known data set that a hub name, or the path of a local copy, ends with; None: unknown.

    A copy has the owner and the name of the data set as its last two folders, as in `copies/openai/gsm8k`; a folder in
    the cache of the hub is known, too.
    """
    parts = name.rstrip("/").split("/")
    names = {"/".join(parts[-2:]), *(part.removeprefix("datasets--").replace("--", "/", 1) for part in parts)}
    return next((known for known in (*KNOWN, *NOT_SENT) if known in names), None)
