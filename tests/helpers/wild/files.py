"""Tiny data files in the layouts that wild commands name, with sentences of our own."""

import base64
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.helpers.source import ROOT

ROWS = 12
PIXEL = base64.b64decode(  # a PNG of one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)
CATEGORIES = ("coding", "writing")  # of SPEED-Bench
THINGS = ("river", "engine", "window", "garden", "letter", "bridge", "market", "winter")

# Data sets of the hub: the columns of row i.
HUB: dict[str, Callable[[int], dict[str, Any]]] = {
    "AI-MO/aimo-validation-aime": lambda i: {
        "problem": f"Add {i} and seven.",
        "solution": f"{i + 7}",
        "answer": "7",
    },
    "Aeala/ShareGPT_Vicuna_unfiltered": lambda i: {"id": f"talk{i}", "conversations": _talk(i)},
    "THUDM/LongBench": lambda i: {
        "input": f"Who paints the {_thing(i)}?",
        "context": _words(60 + i),
        "answers": ["Ann"],
    },
    "allenai/WildChat-4.8M": lambda i: {
        "conversation_hash": f"h{i}",
        "conversation": _chat(i),
        "turn": 1,
    },
    "likaixin/InstructCoder": lambda i: {
        "instruction": "Rename a to b.",
        "input": f"a = {i}",
        "output": f"b = {i}",
    },
    "lmarena-ai/VisionArena-Chat": lambda i: {
        "conversation": [[_chat(i)[0]]],
        "images": ["pixel.png"],
    },
    "lmarena-ai/vision-arena-bench-v0.1": lambda i: {
        "turns": [[_question(i)]],
        "images": ["pixel.png"],
    },
    "lmsys/lmsys-chat-1m": lambda i: {
        "conversation_id": f"c{i}",
        "conversation": _chat(i),
        "turn": 1,
    },
    "openai/gsm8k": lambda i: {
        "question": f"Tom has {i} pears and eats one. How many?",
        "answer": f"{i - 1}",
    },
    "philschmid/mt-bench": lambda i: {
        "question_id": i,
        "category": "writing",
        "turns": [_question(i), "Say it shorter."],
    },
    "vdaita/edit_5k_char": lambda i: {
        "code": f"a = {i}",
        "change_request": "Use b.",
        "new_code": f"b = {i}",
    },
}


def make_files(folder: Path) -> None:
    """Write all files to a folder."""
    (folder / "sonnet.txt").write_text("".join(f"{_words(9, start)}\n" for start in range(200)))
    (folder / "sharegpt.json").write_text(
        json.dumps([{"id": f"talk{i}", "conversations": _talk(i)} for i in range(8 * ROWS)])
    )
    _write_lines(folder / "custom.jsonl", ({"prompt": _words(12 + i, i)} for i in range(ROWS)))
    _write_lines(
        folder / "custom_out.jsonl",
        ({"prompt": _words(12 + i, i), "output_tokens": 3 + i % 4} for i in range(ROWS)),
    )
    _write_lines(
        folder / "mooncake.jsonl",
        (
            {
                "timestamp": 100 * i,
                "input_length": 600 + i,
                "output_length": 4 + i % 3,
                "hash_ids": [1, 2 + i],
            }
            for i in range(ROWS)
        ),
    )
    (folder / "pixel.png").write_bytes(PIXEL)
    _write_lines(
        folder / "image.jsonl",
        ({"prompt": _question(i), "image_files": [str(folder / "pixel.png")]} for i in range(ROWS)),
    )
    (folder / "speed_bench").mkdir()
    _write_lines(
        folder / "speed_bench" / "qualitative.jsonl",
        ({"messages": [_chat(i)[0]], "category": CATEGORIES[i % 2]} for i in range(ROWS)),
    )
    result = json.loads((ROOT / "tests/data/tools/vllm-rs-result.json").read_text())
    for name, day in (("baseline.json", 1), ("optimized.json", 2)):
        (folder / name).write_text(json.dumps(result | {"date": f"2026-01-0{day}T00:00:00"}))
    for name, row in HUB.items():
        place = folder / "hf" / name
        place.mkdir(parents=True)
        (place / "pixel.png").write_bytes(PIXEL)
        _write_lines(place / "train.jsonl", map(row, range(ROWS)))


def _write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _thing(i: int) -> str:
    return THINGS[i % len(THINGS)]


def _words(count: int, start: int = 0) -> str:
    return " ".join(_thing(start * 3 + i * i) for i in range(count))


def _question(i: int) -> str:
    return f"What does the {_thing(i)} number {i} look like?"


def _chat(i: int) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": _question(i)},
        {"role": "assistant", "content": "It is long, old and blue."},
    ]


def _talk(i: int) -> list[dict[str, str]]:
    return [
        {"from": "human", "value": _question(i)},
        {"from": "gpt", "value": "It is long, old and blue."},
    ]
