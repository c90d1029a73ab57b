"""GGUF file: the tokenizer inside a model's file for llama.cpp, as llama.cpp splits and merges.

The fields are those of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, under `tokenizer.ggml`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors

from loadgen.errors import BadInput
from loadgen.util.packages import require

SUFFIX = ".gguf"
CONTROL, USER_DEFINED = 3, 4  # types of tokens
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Inside:
    """What a model's file says of its texts.

    Attributes:
        core: The tokenizer.
        template: The chat template, in Jinja; None where there is none.
        special: The special tokens that the template may name, such as `bos_token`.
    """

    core: Tokenizer
    template: str | None = None
    special: dict[str, str] = field(default_factory=dict)


def _split(pattern: str) -> Any:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _smollm() -> Any:
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), bytewise])


# How text is cut before tokens are sought in each piece, by the file's name for it.
CUTS: dict[str, Callable[[], Any]] = {
    "gpt-2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False),
    "smollm": _smollm,
    "qwen2": lambda: _split(QWEN2),
}


def read(path: Path, flag: str) -> Inside:
    """The tokenizer and the chat template of a model's file.

    Args:
        path: The file.
        flag: What names it, for errors.

    Raises:
        BadInput: It cannot be read, or its tokenizer is of a kind that is not known here.
    """
    remedy = "give the served model's tokenizer.json"
    require(flag, f"reading {path.name}", "gguf", otherwise=remedy)
    import gguf

    try:
        reader: Any = gguf.GGUFReader
        fields = reader(path).fields
    except (OSError, ValueError) as error:
        raise BadInput(flag, f"{path} is no readable GGUF file ({error})", remedy) from error

    def told(name: str) -> Any:
        found = fields.get(f"tokenizer.ggml.{name}")
        return None if found is None else found.contents()

    kind, cut = told("model"), told("pre")
    if kind != "gpt2" or cut not in CUTS:
        problem = f"{path.name} has a tokenizer of the kind {kind} {cut or ''}".rstrip()
        raise BadInput(flag, f"{problem}, not one of {', '.join(CUTS)}", remedy)
    tokens = told("tokens")
    numbers = {f"{name}_token": told(f"{name}_token_id") for name in ("bos", "eos")}
    special = {name: tokens[number] for name, number in numbers.items() if number is not None}
    template = fields.get("tokenizer.chat_template")
    return Inside(_tokenizer(told), template and template.contents(), special)


def _tokenizer(told: Callable[[str], Any]) -> Tokenizer:
    """Byte-pair encoding, of what a file says of it under each name."""
    tokens, merges = told("tokens"), told("merges")
    core = Tokenizer(
        models.BPE(
            vocab={token: number for number, token in enumerate(tokens)},
            merges=[(left, right) for left, _, right in (merge.partition(" ") for merge in merges)],
        )
    )
    core.pre_tokenizer, core.decoder = CUTS[told("pre")](), decoders.ByteLevel()
    kinds = list(zip(tokens, told("token_type"), strict=True))
    control, added = ([token for token, kind in kinds if kind == wanted] for wanted in (CONTROL, USER_DEFINED))
    core.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    core.add_tokens([AddedToken(token, normalized=False) for token in added])
    if told("add_bos_token"):
        first = tokens[told("bos_token_id")]
        core.post_processor = processors.TemplateProcessing(
            single=f"{first} $A", special_tokens=[(first, told("bos_token_id"))]
        )
    return core
