"""Command lines of SGLang's `bench_serving`, whose request bodies tests compare."""

import json
import shutil
from pathlib import Path

from tests.helpers.command_line import LOADGEN, TOKENIZER
from tests.helpers.sent_bodies import TOKENS, Body
from tests.helpers.source import ROOT

RECORDED = ROOT / "tests" / "data" / "tools" / "sglang-bodies.json"  # by bench.peers.sglang_bodies
COUNT = 3
TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}<assistant>"
)
SHAREGPT = ["--dataset-name", "sharegpt", "--dataset-path", "talks.json"]
SHORT = [*SHAREGPT, "--sharegpt-output-len", "4"]
LENGTHS = [
    "--random-input-len",
    "12",
    "--random-output-len",
    str(TOKENS),
    "--random-range-ratio",
    "1.0",
]
RANDOM_IDS = ["--dataset-name", "random-ids", *LENGTHS]
RANDOM = ["--dataset-name", "random", "--dataset-path", "talks.json", *LENGTHS]
PREFIXES = [
    *(
        "--dataset-name",
        "generated-shared-prefix",
        "--gsp-num-groups",
        "1",
        "--gsp-prompts-per-group",
        str(COUNT),
    ),
    *("--gsp-system-prompt-len", "8", "--gsp-question-len", "4", "--gsp-output-len", str(TOKENS)),
]
OAI, CHAT = ["--backend", "sglang-oai", *SHORT], ["--backend", "sglang-oai-chat", *SHORT]
EXTRA = ["--extra-request-body", '{"priority": 2, "nested": {"a": [1, null]}}']
CASES = {
    "generate": SHORT,
    "generate, lengths of the file": SHAREGPT,
    "generate, custom": ["--dataset-name", "custom", "--dataset-path", "talks.jsonl"],
    "generate, chat template": [*SHORT, "--apply-chat-template"],
    "generate, sampling": [*SHORT, "--temperature", "0.5", "--top-p", "0.9"],
    "generate, end of text": [*SHORT, "--disable-ignore-eos"],
    "generate, extra body": [*SHORT, *EXTRA],
    "generate, logprobs": [
        *SHORT,
        "--return-logprob",
        "--top-logprobs-num",
        "2",
        "--logprob-start-len",
        "0",
    ],
    "generate, logprobs of tokens": [*SHORT, "--token-ids-logprob", "5", "7"],
    "generate, routed experts": [*SHORT, "--return-routed-experts"],
    "generate, adapter": [*SHORT, "--lora-name", "a"],
    "generate, cached tokens": [*SHORT, "--cache-report"],
    "generate, no stream": [*SHORT, "--disable-stream"],
    "generate, random ids": RANDOM_IDS,
    "generate, random token ids": [*RANDOM_IDS, "--tokenize-prompt"],
    "generate, random": RANDOM,
    "generate, shared prefix": PREFIXES,
    "completions": OAI,
    "completions, end of text": [*OAI, "--disable-ignore-eos"],
    "completions, extra body": [
        *OAI,
        "--extra-request-body",
        '{"temperature": 0.3, "ignore_eos": false, "priority": 2}',
    ],
    "completions, logprobs": [*OAI, "--return-logprob", "--top-logprobs-num", "2"],
    "completions, adapter": [*OAI, "--lora-name", "a"],
    "completions, cached tokens": [*OAI, "--cache-report"],
    "completions of vllm": ["--backend", "vllm", *SHORT],
    "chat": CHAT,
    "chat, end of text": [*CHAT, "--disable-ignore-eos"],
    "chat, extra body": [*CHAT, *EXTRA],
    "chat, adapter": [*CHAT, "--lora-name", "a"],
    "chat, cached tokens": [*CHAT, "--cache-report"],
    "chat of vllm": ["--backend", "vllm-chat", *SHORT],
}


def write_files(folder: Path, talks: int = 8) -> None:
    """Write so many conversations, and a tokenizer as transformers read it."""
    found = [
        {
            "conversations": [
                {"from": "human", "value": "word " * (3 + each)},
                {"from": "gpt", "value": "reply " * (4 + each)},
            ]
        }
        for each in range(talks)
    ]
    (folder / "talks.json").write_text(json.dumps(found))
    (folder / "talks.jsonl").write_text("".join(f"{json.dumps(talk)}\n" for talk in found))
    shutil.copy(TOKENIZER, folder / "tokenizer.json")
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))


def flags(case: str, folder: Path) -> list[str]:
    """The flags of a case, with URL for the server's URL, and the files of `write_files` in this
    folder.
    """
    told = [str(folder / word) if word.startswith("talks.") else word for word in CASES[case]]
    backend = [] if "--backend" in told else ["--backend", "sglang"]
    named = ["--base-url", "URL", "--model", "m", "--tokenizer", str(folder), "--seed", "7"]
    return [
        *named,
        "--num-prompts",
        str(COUNT),
        "--max-concurrency",
        "1",
        "--disable-tqdm",
        *backend,
        *told,
    ]


def own(case: str, folder: Path) -> list[str]:
    """loadgen's command of a case."""
    return [
        *LOADGEN,
        "run",
        "--compat",
        "sglang",
        *flags(case, folder),
        "--no-preflight",
        "--quiet",
    ]


def measured(case: str, sent: list[Body]) -> list[Body]:
    """The bodies of the measured requests, which follow one warm-up; of random prompts without
    their words.

    The field by which loadgen asks for usage is left out: SGLang's tool does not ask for it.
    """
    found = [
        {name: value for name, value in body.items() if name != "stream_options"}
        for body in sent[1:]
    ]
    if CASES[case][-2:] != PREFIXES[-2:] and not {*LENGTHS} <= {*CASES[case]}:
        return found
    return [
        {
            name: _size(value) if name in ("text", "input_ids") else value
            for name, value in each.items()
        }
        for each in found
    ]


def _size(prompt: str | list[int]) -> str:
    return "a text" if isinstance(prompt, str) else f"{len(prompt)} token ids"
