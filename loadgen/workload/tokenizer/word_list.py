"""Word lists: the words of a tokenizer, found once and kept between runs, because finding them takes half a second."""

import contextlib
import hashlib
import importlib.metadata
import os
import secrets
from pathlib import Path

import numpy as np
import orjson

from loadgen.util import private_files
from loadgen.workload.files import cache_folder
from loadgen.workload.tokenizer.exact_text import Words
from loadgen.workload.tokenizer.tokenizer import Tokenizer

VERSION = 1  # of the files, and of the rule by which `Words` finds them
ENDING = ".words"


def of(tokenizer: Tokenizer) -> Words:
    """The words of a tokenizer: those that were kept, or else found now.

    Raises:
        BadInput: It has too few of them.
    """
    place = cache_folder.folder() / f"{_key(tokenizer)}{ENDING}"
    known = _read(place)
    if known is None:
        known = Words.of(tokenizer)
        with contextlib.suppress(OSError):
            _write(place, known)
    return known


def _key(tokenizer: Tokenizer) -> str:
    parts = [VERSION, importlib.metadata.version("tokenizers"), tokenizer.sha256]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()


def _read(place: Path) -> Words | None:
    """The words of a file; None where there is none, or it is not as it was written."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        digest, _, content = place.read_bytes().partition(b"\n")
        if hashlib.sha256(content).hexdigest().encode() == digest:
            additive, words = orjson.loads(content)
            with contextlib.suppress(OSError):
                os.utime(place)  # they were used, and are not the next to go
            return Words(np.array(words, dtype=object), additive)
    return None


def _write(place: Path, words: Words) -> None:
    """Write a file, which takes its name when it is whole.

    Raises:
        OSError: It cannot be written.
    """
    content = orjson.dumps([words.additive, words.items.tolist()])
    draft = cache_folder.make_folder() / f"{secrets.token_hex(16)}{cache_folder.DRAFT}"
    with open(draft, "xb", opener=private_files.opener) as file:
        file.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    draft.replace(place)
