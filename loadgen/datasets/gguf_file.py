"""GGUF file: the tokenizer inside a model's file for llama.cpp, as llama.cpp splits and merges.

The fields are those of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, under `tokenizer.ggml`.
"""

from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors

from loadgen.errors import BadInput

SUFFIX = ".gguf"
CONTROL, USER_DEFINED = 3, 4  # types of tokens
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _split(pattern: str) -> Any:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


# How text is cut before tokens are sought in each piece, by the file's name for it.
CUTS = {
    "gpt-2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False),
    "smollm": lambda: pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    ),
    "qwen2": lambda: _split(QWEN2),
}


def read(path: Path, field: str) -> Tokenizer:
    """The tokenizer of a model's file.

    Args:
        path: The file.
        field: What names it, for errors.

    Raises:
        BadInput: It cannot be read, or its tokenizer is of a kind that is not known here.
    """
    remedy = "give the tokenizer.json of the served model"
    try:
        import gguf
    except ImportError as error:
        problem = f"reading {path.name} needs the package gguf"
        raise BadInput(field, problem, f"pip install 'loadgen[gguf]', or {remedy}") from error
    try:
        fields = gguf.GGUFReader(path).fields
    except (OSError, ValueError) as error:
        raise BadInput(field, f"{path} is no readable GGUF file ({error})", remedy) from error

    def told(name: str) -> Any:
        found = fields.get(f"tokenizer.ggml.{name}")
        return None if found is None else found.contents()

    kind, cut = told("model"), told("pre")
    if kind != "gpt2" or cut not in CUTS:
        problem = f"{path.name} has a tokenizer of the kind {kind} {cut or ''}".rstrip()
        raise BadInput(field, f"{problem}, not one of {', '.join(CUTS)}", remedy)
    tokens, merges, types = told("tokens"), told("merges"), told("token_type")
    core = Tokenizer(
        models.BPE(
            vocab={token: number for number, token in enumerate(tokens)},
            merges=[(left, right) for left, _, right in (merge.partition(" ") for merge in merges)],
        )
    )
    core.pre_tokenizer, core.decoder = CUTS[cut](), decoders.ByteLevel()
    for wanted, special in ((CONTROL, True), (USER_DEFINED, False)):
        added = [token for token, of_type in zip(tokens, types, strict=True) if of_type == wanted]
        (core.add_special_tokens if special else core.add_tokens)(
            [AddedToken(token, special=special, normalized=False) for token in added]
        )
    if told("add_bos_token"):
        first = tokens[told("bos_token_id")]
        core.post_processor = processors.TemplateProcessing(
            single=f"{first} $A", special_tokens=[(first, told("bos_token_id"))]
        )
    return core
