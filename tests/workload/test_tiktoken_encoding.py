"""Models of OpenAI have prompts of tiktoken's encodings, if the file of one is on this machine."""

import hashlib
import sys
from pathlib import Path

import pytest

from loadgen.errors import BadInput
from loadgen.workload.tokenizer import tiktoken_encoding
from loadgen.workload.tokenizer.tokenizer import load, of_openai
from tests.helpers.source import ROOT

tiktoken = pytest.importorskip("tiktoken")
# The patterns of tiktoken 0.14.
PATTERNS = {
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k_base": "|".join(
        (
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )
    ),
}
TEXTS = (
    "It's 1234567 o'clock,\r\n  WE'LL see...   \n\n",
    "\u00e9t\u00e9 \u4e2d\u6587 \U0001f600\U0001f469\u200d\U0001f467  ",
    "x = {'a': [1, 22, 333]}  # twice\n\tdone /// \n",
    "",
    "   ",
)
CACHE_FILE = {  # as tiktoken names the files of its cache
    name: hashlib.sha1(
        f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken".encode()
    ).hexdigest()
    for name in PATTERNS
}


def trained(name: str) -> "tiktoken.Encoding":
    """An encoding with the pattern of a real one and few tokens, trained here."""
    from tiktoken._educational import bpe_train

    text = (ROOT / "docs" / "start.md").read_text()[:4000] + "".join(TEXTS)
    ranks = bpe_train(text, 400, PATTERNS[name])
    return tiktoken.Encoding(name, pat_str=PATTERNS[name], mergeable_ranks=ranks, special_tokens={})


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """tiktoken's cache, without files; what loadgen makes of them is kept nowhere else."""
    folder = tmp_path / "encodings"
    folder.mkdir()
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


@pytest.mark.parametrize("name", PATTERNS)
def test_texts_have_the_tokens_that_tiktoken_counts(
    files: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (files / CACHE_FILE[name]).touch()
    encoding = trained(name)
    monkeypatch.setattr(tiktoken, "get_encoding", {name: encoding}.__getitem__)
    tokenizer = load(f"tiktoken:{name}")
    texts = [*TEXTS, (ROOT / "README.md").read_text()]
    assert tokenizer.encode_batch(texts) == [encoding.encode_ordinary(text) for text in texts]
    assert tokenizer.decode_batch(tokenizer.encode_batch(texts)) == texts
    assert (tokenizer.special_tokens, tokenizer.size) == (0, 400)


def test_an_encoding_is_converted_once(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (files / CACHE_FILE["o200k_base"]).touch()
    monkeypatch.setattr(tiktoken, "get_encoding", trained)
    first = load("tiktoken:o200k_base")
    monkeypatch.delattr(tiktoken, "get_encoding")
    assert load("tiktoken:o200k_base").sha256 == first.sha256


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o-mini", "o200k_base"),
        ("openai/gpt-5-nano", "o200k_base"),
        ("azure/gpt-4", "cl100k_base"),
        ("gpt-oss-20b", "o200k_harmony"),
    ],
)
def test_models_of_openai_have_an_encoding_if_its_file_is_here(
    files: Path, model: str, encoding: str
) -> None:
    assert of_openai(model) is None
    for file in CACHE_FILE.values():
        (files / file).touch()
    assert of_openai(model) == f"tiktoken:{encoding}"


@pytest.mark.parametrize("model", ["llama-3", "vicuna/gpt-4-mine", "mistral-large-latest"])
def test_other_models_have_none(files: Path, model: str) -> None:
    for file in CACHE_FILE.values():
        (files / file).touch()
    assert of_openai(model) is None


def test_without_the_package_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert of_openai("gpt-4o") is None
    with pytest.raises(BadInput, match="pip install tiktoken"):
        tiktoken_encoding.tokenizer_json("tiktoken:p50k_base")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("tiktoken:o200k_base", "the file of o200k_base is not on this machine; fetch it"),
        ("tiktoken:o200k", "unknown encoding 'o200k'; give one of"),
        ("tiktoken:../x", "unknown encoding '../x'"),
    ],
)
def test_an_encoding_that_is_not_here_is_refused(files: Path, name: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        load(name)
    assert not list(files.iterdir())
