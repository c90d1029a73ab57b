"""Encodings of OpenAI's models: those of the package tiktoken, as tokenizers of `tokenizers`.

tiktoken downloads the file of an encoding when it is first used. loadgen takes a file that is here,
and downloads none.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors

from loadgen.config.data import TIKTOKEN
from loadgen.errors import BadInput, setting
from loadgen.util.packages import require
from loadgen.workload.files import cache

VERSION = 1  # of what is made of an encoding
URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
FILES = {"o200k_harmony": "o200k_base", "p50k_edit": "p50k_base"}  # encodings with that of another
OWNERS = ("", "openai", "azure")  # before the name of a model, as gateways spell it
UNMERGED = 1 << 62
# Rust's regular expressions have possessive counts, where Oniguruma would count these again.
POSSESSIVE_COUNT = re.compile(r"(\{\d+(?:,\d*)?\})\+")


def of_model(model: str) -> str | None:
    """Return the value of --tokenizer for a model of OpenAI's; None for any other model, without
    the package tiktoken, and where the file of its encoding is not on this machine.
    """
    owner, _, name = model.rpartition("/")
    try:
        from tiktoken import encoding_name_for_model

        encoding = encoding_name_for_model(name)
    except (ImportError, KeyError):
        return None
    return f"{TIKTOKEN}{encoding}" if owner in OWNERS and _is_here(encoding) else None


def tokenizer_json(name: str) -> bytes:
    """Return an encoding as the content of a tokenizer.json. It takes seconds for the first time.

    Args:
        name: The value of --tokenizer.

    Raises:
        BadInput: There is no such encoding, or its file is not on this machine.
    """
    encoding = name.removeprefix(TIKTOKEN)
    entry = f"tiktoken-{VERSION}-{encoding}.json"
    content = cache.read(entry) if encoding.isidentifier() else None
    if content is None:
        content = _converted(encoding)
        cache.write(entry, content)
    return content


def _converted(name: str) -> bytes:
    require(setting.tokenizer, f"{TIKTOKEN}{name}", "tiktoken")
    import tiktoken

    if name not in (names := tiktoken.list_encoding_names()):
        raise BadInput(setting.tokenizer, f"unknown encoding {name!r}", f"give one of {names}")
    if not _is_here(name):
        problem = f"the file of {name} is not on this machine"
        command = f"python -c \"import tiktoken; tiktoken.get_encoding('{name}')\""
        raise BadInput(
            setting.tokenizer, problem, f"fetch it: {command}, or set TIKTOKEN_CACHE_DIR"
        )
    encoding = tiktoken.get_encoding(name)
    pattern = POSSESSIVE_COUNT.sub(r"\1", encoding._pat_str)
    return of_ranks(encoding._mergeable_ranks, pattern).to_str().encode()


def _is_here(encoding: str) -> bool:
    """Return whether tiktoken has the file of an encoding in its cache."""
    variables = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
    usual = Path(tempfile.gettempdir(), "data-gym-cache")
    folder = next((os.environ[name] for name in variables if name in os.environ), usual)
    url = URL.format(FILES.get(encoding, encoding))
    return Path(folder, hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()).is_file()


def of_ranks(ranks: dict[bytes, int], split: str, *, ignore_merges: bool = True) -> Tokenizer:
    """Make byte-level BPE of tokens by rank.

    Args:
        ranks: The rank of each token, which is its id.
        split: A regular expression, by which texts are cut into pieces.
        ignore_merges: Whether a piece that is a token is one, whatever the merges.
    """
    letters = _byte_letters()
    vocab: dict[str, int] = {}
    merges: list[tuple[str, str]] = []
    for piece, rank in sorted(ranks.items(), key=lambda item: item[1]):
        vocab[_spelled(piece, letters)] = rank
        parts = _merged(piece, ranks, below=rank)
        if len(parts) == 2:
            merges.append((_spelled(parts[0], letters), _spelled(parts[1], letters)))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(split), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def _merged(piece: bytes, ranks: dict[bytes, int], *, below: int) -> list[bytes]:
    """Merge the bytes of a token by all ranks below its own: the two parts left are its merge."""
    parts = [bytes([byte]) for byte in piece]
    while len(parts) > 1:
        joined = [ranks.get(left + right, UNMERGED) for left, right in pairwise(parts)]
        best = min(joined)
        if best >= below:
            break
        at = joined.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def _byte_letters() -> dict[int, str]:
    """Give GPT-2's printable letter for each of the 256 bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (byte for byte in range(256) if byte not in printable)
    return {byte: chr(byte) for byte in printable} | {
        byte: chr(256 + n) for n, byte in enumerate(others)
    }


def _spelled(piece: Iterable[int], letters: dict[int, str]) -> str:
    return "".join(letters[byte] for byte in piece)
