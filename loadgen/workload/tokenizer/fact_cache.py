"""The cache of facts that follow from a tokenizer: its sizes, its words, the tokens that its chat template adds."""

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from loadgen.util.package_version import package_version
from loadgen.workload.files import cache


def get_or_make(kind: str, key: Sequence[Any], make: Callable[[], Any]) -> Any:
    """Return a fact from the cache, or make and store it.

    Args:
        kind: What the fact is: the suffix of its entry.
        key: All that it depends on besides the version of the package `tokenizers`, as JSON: the hash of the tokenizer,
            the version of the rule, and so on.
        make: Makes the fact, as JSON.
    """
    digest = hashlib.sha256(orjson.dumps([package_version("tokenizers"), *key])).hexdigest()
    with contextlib.suppress(ValueError):  # there is none
        return orjson.loads(cache.read(f"{digest}.{kind}") or b"")
    fact = make()
    cache.write(f"{digest}.{kind}", orjson.dumps(fact))
    return fact
