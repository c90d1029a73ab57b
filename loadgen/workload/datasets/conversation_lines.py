"""`ConversationLines`: conversations of a file of JSON lines."""

import contextlib
import json
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput
from loadgen.workload.datasets.sharegpt_file import KEY, Conversation, is_text
from loadgen.workload.files.mapped_file import DATASET_PATH, map_file, provenance

KEYS, TEXTS = (KEY, "conversation"), ("content", "value")
REMEDY = 'give JSON lines of {"conversations": [{"content": QUESTION}, {"content": ANSWER}]}'


class ConversationLines:
    """The conversations of at least two turns in a file of JSON lines. Lines that are not JSON are left out, as there.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: list[Conversation] = []
        for number, line in enumerate(map_file(path, REMEDY)[:].splitlines()):
            with contextlib.suppress(ValueError, RecursionError):
                if (found := _conversation(json.loads(line), number)) is not None:
                    self._found.append(found)
        if not self._found:
            raise BadInput(DATASET_PATH, f"{path} has no conversation of two turns", REMEDY)

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, index: int) -> Conversation:
        return self._found[index]

    def provenance(self) -> dict[str, Any]:
        """Return name, size and hash of the file, as JSON. Reads the whole file."""
        return provenance(self.path)


def _conversation(row: Any, number: int) -> Conversation | None:
    if not isinstance(row, dict):
        return None
    turns = next((row[key] for key in KEYS if isinstance(row.get(key), list)), list[Any]())[:2]
    if len(turns) < 2 or not all(isinstance(turn, dict) for turn in turns):
        return None
    prompt, answer = (next((turn[key] for key in TEXTS if key in turn), "") for turn in turns)
    return Conversation(str(number), prompt, answer) if is_text(prompt) and is_text(answer) else None
