"""The cache of facts that follow from a tokenizer: its sizes, its words, the tokens that its chat template adds."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from loadgen.util.packages import package_version
from loadgen.workload.files import cache

_made_here: set[str] = set()  # hashes of the tokenizers whose facts this process makes now


def get_or_make(kind: str, tokenizer: str, key: Sequence[Any], make: Callable[[], Any]) -> Any:
    """Return a fact from the cache, or make and store it; where another process makes it, wait for that one.

    Args:
        kind: What the fact is: the suffix of its entry.
        tokenizer: The hash of the tokenizer.
        key: All else that it depends on besides the version of the package `tokenizers`, as JSON: the version of the
            rule, and so on.
        make: Makes the fact, as JSON other than null.
    """
    if (known := find(kind, tokenizer, key)) is not None:
        return known
    with making(tokenizer):
        if (known := find(kind, tokenizer, key)) is not None:
            return known
        fact = make()
        cache.write(_entry(kind, tokenizer, key), orjson.dumps(fact))
        return fact


def find(kind: str, tokenizer: str, key: Sequence[Any]) -> Any:
    """Return a fact from the cache; None if it is not there. The arguments are those of `get_or_make`."""
    with contextlib.suppress(ValueError):  # there is none
        return orjson.loads(cache.read(_entry(kind, tokenizer, key)) or b"")
    return None


@contextlib.contextmanager
def making(tokenizer: str) -> Iterator[None]:
    """Let other processes wait for the facts of this tokenizer while the context lasts."""
    if tokenizer in _made_here:
        yield
        return
    with cache.locked(tokenizer):
        _made_here.add(tokenizer)
        try:
            yield
        finally:
            _made_here.remove(tokenizer)


def _entry(kind: str, tokenizer: str, key: Sequence[Any]) -> str:
    digest = hashlib.sha256(orjson.dumps([package_version("tokenizers"), tokenizer, *key])).hexdigest()
    return f"{digest}.{kind}"
