"""Tokenizer: the one that servers and tools count with, in the form of Hugging Face.

Like real ones it keeps any text, and has its words with and without the space before them. Any
sequence of its tokens is a text of as many, for tools that draw tokens.
"""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

FILE, CONFIG = "tokenizer.json", "tokenizer_config.json"
UNKNOWN, SPACE = "<unk>", "\u2581"
LIKELY, UNLIKELY = -1.0, -10.0  # scores of words, and of the characters of all other text
PRINTABLE = range(33, 127)
# The template adds nothing, as the servers: some tools count prompts only with one.
TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"


def write_tokenizer(folder: Path) -> Path:
    """Write it as transformers read it; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps(_contents()))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE}
    (folder / CONFIG).write_text(json.dumps(config))
    return folder.resolve()


def _contents() -> dict[str, Any]:
    simulated = json.loads((files("loadgen.engines.sim") / FILE).read_text())["model"]["vocab"]
    words = ["word", *(text[1:] for text in simulated if text[0] == " " != text)]
    pieces = [
        (UNKNOWN, 0.0),
        *((SPACE + word, LIKELY) for word in words),
        *((text, UNLIKELY) for text in (SPACE, *map(chr, PRINTABLE))),
    ]
    spaces = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first", "split": True}
    not_stripped = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {
        "version": "1.0",
        "added_tokens": [{"id": 0, "content": UNKNOWN, "special": True} | not_stripped],
        "pre_tokenizer": spaces,
        "decoder": spaces,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": False},
    }
