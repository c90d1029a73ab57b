"""`CacheBlock`: the unit in which a prefix cache keeps and finds prompts."""

from msgspec import Struct

DEFAULT_TOKENS = 16  # vLLM's
BY_DEFAULT = "default"


class CacheBlock(Struct, frozen=True):
    """A block of a prefix cache.

    Attributes:
        tokens: Its size.
        source: Where the size is from: a flag, the name of a metric, or the default.
    """

    tokens: int = DEFAULT_TOKENS
    source: str = BY_DEFAULT
