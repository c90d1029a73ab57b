"""`Layout`: how the records of a data set of the hub become prompts, and how long their answers
are.

KNOWN has those that `vllm bench serve` (0.33), `vllm-rs` and SGLang (0.5.23) know by name, as they
read them: prompts, default lengths, splits and bounds are those of these tools. `layout_of` makes
one by columns: those that the user names, else those of well-known names, as in vllm-rs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.workload.datasets.prompt_rows import Row, message_texts
from loadgen.workload.encoded_images import referred
from loadgen.workload.image import part

Record = Mapping[str, Any]
MIN_TOKENS = 4  # of a prompt and an answer, where a layout has bounds
COLUMN = setting.hf_column
MAPPED = ("id", "prompt", "messages", "input_tokens", "output_tokens", "answer")
CHATS = ("conversation", "conversations")  # columns whose first question is asked
PROMPTS = ("prompt", "turns", "question", "problem", "input", "text", "content", "instruction")
ANSWERS = ("completion", "response", "answer", "output", "solution", "answers")
ASKS, REPLIES = ("user", "human"), ("assistant", "gpt")  # names of speakers
SPEC_BENCH, SPEED_BENCH, LONGBENCH_V2 = (
    "hemingkx/Spec-Bench",
    "nvidia/SPEED-Bench",
    "THUDM/LongBench-v2",
)
# the beginning of texts that SPEED-Bench does not contain itself
MASKED = "FULL BENCHMARK DATA SHOULD BE FETCHED"
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
    "### Instruction:\nYou are a code completion assistant and your task is to analyze user edits "
    "and then rewrite an "
    "excerpt that the user provides, suggesting the appropriate edits within the excerpt, taking "
    "into account the "
    "cursor location.\n\n### User Edits:\n\n{events}\n\n### User Excerpt:\n\n{input}\n\n### "
    "Response:\n\n"
)
FIRST_TURN = "{turns[0]}"
CODE = "{input}\n\n{instruction} Just output the code, do not include any explanation."
CHOICES = (
    "{context}\n\nQuestion: {question}\nA. {choice_A}\nB. {choice_B}\nC. {choice_C}\nD. "
    "{choice_D}\nAnswer:"
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lengths of usable prompts and answers, in tokens.

    Attributes:
        prompt: The most in a prompt.
        total: The most in a prompt and its answer.
        of_any_answer: Whether the bounds also hold for answers whose length the user gives.
    """

    prompt: int
    total: int
    of_any_answer: bool = False

    def hold(self, prompt: int, answer: int) -> bool:
        """Return whether lengths are within the bounds."""
        return (
            MIN_TOKENS <= prompt <= self.prompt
            and answer >= MIN_TOKENS
            and prompt + answer <= self.total
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """How the records of a data set become prompts.

    Attributes:
        read: Makes the row of a record, given its source; None: the record is left out. Raises
            LookupError, TypeError, ValueError or AttributeError for a record of another form.
        answer: Returns the recorded answer of a record; "" for none. None: the data set has none.
        output_len: Maximum tokens of an answer without a recorded one.
        subset, split: Those to read if the user names none.
        bounds: The usable lengths; None: all.
        special: Whether special tokens count in the length of an answer.
        rendered: Whether vLLM puts the chat template around the prompts itself.
        by_buffer: Whether the order is that of the package `datasets`, which shuffles a part at a
            time; else that of a list that is shuffled as a whole.
        columns: The column of each field, if prompts are made from columns that the user can
            choose.
    """

    read: Callable[[Record, str], Row | None]
    answer: Callable[[Record], str] | None = None
    output_len: int = 128
    subset: str | None = None
    split: str | None = "train"
    bounds: Bounds | None = None
    special: bool = True
    rendered: bool = False
    by_buffer: bool = True
    columns: Mapping[str, str] | None = None


def layout_of(settings: RunSettings, first: Record) -> Layout:
    """Return the layout of a data set from `--hf-column` and its first record.

    Raises:
        BadInput: A column is unknown, or none has prompts.
    """
    if (
        not settings.hf_column
        and {"context", "input"} <= first.keys()
        and not {"messages", *CHATS} & first.keys()
    ):
        return READING
    columns = _mapped_columns(settings, first)

    def read(record: Record, source: str) -> Row | None:
        fields = {field: record.get(column) for field, column in columns.items()}
        chat, prompt = fields.get("messages"), fields.get("prompt")
        if chat and _is_answered(chat):
            fields["messages"] = chat[:-1]
        if isinstance(prompt, list):
            fields["prompt"] = _text(prompt, ASKS)
        return Row.of(fields, source)

    def answer(record: Record) -> str:
        chat = record.get(columns["messages"]) if "messages" in columns else None
        text = _text(record.get(columns["answer"]), REPLIES) if "answer" in columns else ""
        return text or ("\n".join(message_texts(chat[-1:])) if chat and _is_answered(chat) else "")

    return Layout(read, answer, split=None, columns=columns)


def known_name(name: str) -> str | None:
    """Return the name of the known data set that a hub name, or the path of a local copy, ends
    with; None: unknown.

    A copy has the owner and the name of the data set as its last two folders, as in
    `copies/openai/gsm8k`; a folder in the cache of the hub is known, too.
    """
    parts = name.rstrip("/").split("/")
    names = {
        "/".join(parts[-2:]),
        *(part.removeprefix("datasets--").replace("--", "/", 1) for part in parts),
    }
    return next((known_set for known_set in (*KNOWN, *NOT_SENT) if known_set in names), None)


def asking(prompt: str | Callable[[Record], Any]) -> Callable[[Record, str], Row | None]:
    """Return a `Layout.read` for a format of columns, or for what makes text or messages; None
    leaves a record out.
    """

    def read(record: Record, source: str) -> Row | None:
        content = prompt.format_map(record) if isinstance(prompt, str) else prompt(record)
        if content is None:
            return None
        return Row.of({"messages" if isinstance(content, list) else "prompt": content}, source)

    return read


def _mapped_columns(settings: RunSettings, first: Record) -> dict[str, str]:
    mapping = dict(pair.partition("=")[::2] for pair in settings.hf_column)
    for field, column in mapping.items():
        if field not in MAPPED or not column:
            problem = f"unknown field or empty column in {field!r}"
            raise BadInput(COLUMN, problem, f"write FIELD=COLUMN with {', '.join(MAPPED)}")
        if column not in first:
            raise BadInput(COLUMN, f"unknown column {column!r}", f"choose from {', '.join(first)}")
    columns = {name: name for name in ("id", "input_tokens", "output_tokens") if name in first}
    if not {"prompt", "messages"} & mapping.keys():
        chat = next((name for name in CHATS if isinstance(first.get(name), list)), None)
        prompt = _first_of(PROMPTS, first)
        if "messages" in first:
            columns["messages"] = "messages"
        elif chat:  # it has the answers, too
            columns |= {"prompt": chat, "answer": chat}
        elif prompt:
            columns["prompt"] = prompt
        else:
            remedy = f"give it: {COLUMN} prompt=COLUMN, with one of {', '.join(first)}"
            problem = f"{settings.dataset_path} has no column prompt or messages"
            raise BadInput(COLUMN, problem, remedy)
    if "answer" not in mapping and (answer := _first_of(ANSWERS, first)):
        columns.setdefault("answer", answer)
    return columns | mapping


def _first_of(names: Sequence[str], record: Record) -> str | None:
    return next((name for name in names if name in record), None)


def _is_answered(chat: Any) -> bool:
    last = chat[-1] if isinstance(chat, list) and len(chat) > 1 else None
    return isinstance(last, dict) and last.get("role") == "assistant"


def _text(value: Any, speakers: Sequence[str]) -> str:
    """Return a text, the first of several, or the first message of some speakers; "" if there is
    none.

    Raises:
        ValueError: The value is something else.
    """
    if value is None or value == []:
        return ""
    if isinstance(value, list):
        if isinstance(value[0], Mapping):
            turns = (turn for turn in value if turn.get("role", turn.get("from")) in speakers)
            return next((str(turn.get("content") or turn.get("value") or "") for turn in turns), "")
        value = value[0]
    if not isinstance(value, str):
        raise ValueError("has a column that is neither a text nor a conversation")
    return value


def _first_of_turn(record: Record) -> str:
    first = record["turns"][0][0]
    return str(first["content"] if isinstance(first, Mapping) else first)


def _speed_bench(record: Record) -> str | None:
    """Return the first turn of a prepared row, which has messages, or of a published one, which
    has turns.
    """
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
    "philschmid/mt-bench": Layout(asking(FIRST_TURN), output_len=256, rendered=True),
    "likaixin/InstructCoder": Layout(asking(CODE), output_len=200, rendered=True),
    "openai/openai_humaneval": Layout(
        asking(itemgetter("prompt")), output_len=256, split="test", rendered=True
    ),
    "openai/gsm8k": Layout(
        asking(itemgetter("question")), output_len=256, subset="main", split="test", rendered=True
    ),
    "Aeala/ShareGPT_Vicuna_unfiltered": Layout(
        asking(_first_of_two),
        lambda record: record["conversations"][1]["value"],
        bounds=Bounds(1024, 2048),
    ),
    "zed-industries/zeta": Layout(
        asking(ZETA), lambda record: record["output"][record["output"].find(REGION) :]
    ),
    **dict.fromkeys(
        ("AI-MO/aimo-validation-aime", "AI-MO/NuminaMath-1.5", "AI-MO/NuminaMath-CoT"), _MATHS
    ),
    **dict.fromkeys(("vdaita/edit_5k_char", "vdaita/edit_10k_char"), _EDITS),
    **dict.fromkeys(
        ("mgoin/mlperf-inference-llama2-data", "mgoin/mlperf-inference-llama3.1-data"), _EXAM
    ),
    **dict.fromkeys(("THUDM/LongBench", "zai-org/LongBench"), READING),
    LONGBENCH_V2: Layout(asking(CHOICES), output_len=10, by_buffer=False),
    "lmarena-ai/VisionArena-Chat": Layout(
        asking(_pictured(lambda record: record["conversation"][0][0]["content"]))
    ),
    "lmarena-ai/vision-arena-bench-v0.1": Layout(asking(_pictured(_first_of_turn))),
    SPEC_BENCH: Layout(asking(FIRST_TURN), output_len=256, rendered=True, by_buffer=False),
    SPEED_BENCH: Layout(
        asking(_speed_bench),
        output_len=4096,
        subset="qualitative",
        split=None,
        rendered=True,
        by_buffer=False,
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
            "speechcolab/gigaspeech",
            "kensho/spgispeech",
            "ArtificialAnalysis/Earnings22-Cleaned-AA",
            "D4nt3/esb-datasets-earnings22-validation-tiny-filtered",
        ),
        SPEECH,
    ),
    "gorilla-llm/Berkeley-Function-Calling-Leaderboard": TOOLS,
}
