"""The words of a tokenizer from the cache: to find them takes half a second."""

import contextlib
import hashlib
import importlib.metadata

import numpy as np
import orjson

from loadgen.workload.files import cache
from loadgen.workload.tokenizer.exact_text import Words
from loadgen.workload.tokenizer.tokenizer import Tokenizer

VERSION = 1  # of the entries, and of the rule of `Words.of`
SUFFIX = ".words"


def words_of(tokenizer: Tokenizer) -> Words:
    """Return the words of a tokenizer: read them from the cache, or find and store them.

    Raises:
        BadInput: The tokenizer has too few words.
    """
    key = [VERSION, importlib.metadata.version("tokenizers"), tokenizer.sha256]
    name = f"{hashlib.sha256(orjson.dumps(key)).hexdigest()}{SUFFIX}"
    with contextlib.suppress(ValueError, TypeError):
        additive, words = orjson.loads(cache.read(name) or b"")
        return Words(np.array(words, dtype=object), additive)
    found = Words.of(tokenizer)
    cache.write(name, orjson.dumps([found.additive, found.items.tolist()]))
    return found
