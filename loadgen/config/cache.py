"""Settings of the protocol for the server's prefix cache: its state when the measured part begins."""

from dataclasses import dataclass
from typing import Literal, get_args

from loadgen.config.data import NO_TOKENIZER
from loadgen.config.option import LOAD, option
from loadgen.errors import BadInput

CacheProtocol = Literal["as-is", "cold", "salted", "warm"]
AS_IS, COLD, SALTED, WARM = get_args(CacheProtocol)
CACHE = "--cache"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)  # a part of RunSettings
class CacheSettings:
    """Fields of the prefix cache."""

    cache: CacheProtocol = option(
        "as-is",
        LOAD,
        "state of the server's prefix cache when the clock starts; cold: emptied by the engine's own call; salted: no "
        "prompt begins as in an earlier run; warm: each distinct prefix, or prompt, was sent once",
    )
    cache_block_size: int | None = option(
        None, LOAD, "tokens of a block of the prefix cache (as the server's metrics say, or else 16)", metavar="TOKENS"
    )


def check(protocol: CacheProtocol, tokenizer: str | None) -> None:
    """Check that the protocol can be followed.

    Raises:
        BadInput: Prompts are to be salted within their length, and nothing counts their tokens.
    """
    if protocol == SALTED and tokenizer == NO_TOKENIZER:
        problem = f"salted needs a tokenizer, and --tokenizer is {NO_TOKENIZER}"
        raise BadInput(CACHE, problem, "name the model's tokenizer, or give --cache cold")
