"""Read the tokenizer and chat template of a GGUF file, with the pre-tokenizers and merges of
llama.cpp.

The fields are those of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, under
`tokenizer.ggml`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors

from loadgen.errors import BadInput
from loadgen.util.packages import require

CONTROL, USER_DEFINED = 3, 4  # token types
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class GgufTokenizer:
    """The tokenizer and chat template of a GGUF file.

    Attributes:
        core: The tokenizer.
        template: The chat template in Jinja; None if there is none.
        special: Special tokens that the template may use, such as `bos_token`.
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


# Pre-tokenizers by their names in GGUF files.
PRE_TOKENIZERS: dict[str, Callable[[], Any]] = {
    "gpt-2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False),
    "smollm": _smollm,
    "qwen2": lambda: _split(QWEN2),
}


def read(path: Path, flag: str) -> GgufTokenizer:
    """Read the tokenizer and the chat template of a GGUF file.

    Args:
        path: The file.
        flag: The flag that names it, for errors.

    Raises:
        BadInput: The file cannot be read, or has an unsupported kind of tokenizer.
    """
    remedy = "give the served model's tokenizer.json"
    require(flag, f"reading {path.name}", "gguf", otherwise=remedy)
    import gguf

    try:
        reader: Any = gguf.GGUFReader
        fields = reader(path).fields
    except (OSError, ValueError) as error:
        raise BadInput(flag, f"{path} is not a readable GGUF file ({error})", remedy) from error

    def field_of(name: str) -> Any:
        entry = fields.get(f"tokenizer.ggml.{name}")
        return None if entry is None else entry.contents()

    kind, pre_tokenizer = field_of("model"), field_of("pre")
    if kind != "gpt2" or pre_tokenizer not in PRE_TOKENIZERS:
        problem = f"{path.name} has an unsupported tokenizer, {kind} {pre_tokenizer or ''}".rstrip()
        raise BadInput(flag, f"{problem}; supported are {', '.join(PRE_TOKENIZERS)}", remedy)
    tokens = field_of("tokens")
    numbers = {f"{name}_token": field_of(f"{name}_token_id") for name in ("bos", "eos")}
    special = {name: tokens[number] for name, number in numbers.items() if number is not None}
    template = fields.get("tokenizer.chat_template")
    return GgufTokenizer(_tokenizer(field_of), template and template.contents(), special)


def _tokenizer(field_of: Callable[[str], Any]) -> Tokenizer:
    tokens, merges = field_of("tokens"), field_of("merges")
    core = Tokenizer(
        models.BPE(
            vocab={token: number for number, token in enumerate(tokens)},
            merges=[(left, right) for left, _, right in (merge.partition(" ") for merge in merges)],
        )
    )
    core.pre_tokenizer, core.decoder = PRE_TOKENIZERS[field_of("pre")](), decoders.ByteLevel()
    kinds = list(zip(tokens, field_of("token_type"), strict=True))
    control, added = (
        [token for token, kind in kinds if kind == token_kind]
        for token_kind in (CONTROL, USER_DEFINED)
    )
    core.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in control]
    )
    core.add_tokens([AddedToken(token, normalized=False) for token in added])
    if field_of("add_bos_token"):
        first = tokens[field_of("bos_token_id")]
        core.post_processor = processors.TemplateProcessing(
            single=f"{first} $A", special_tokens=[(first, field_of("bos_token_id"))]
        )
    return core
