"""A tokenizer is loaded by path or name, counts as its file says, or is refused in one line."""

import hashlib

import pytest
from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload.files import hub
from loadgen.workload.tokenizer.tokenizer import load, tokenizer_of
from tests.helpers import trained_tokenizers as trained
from tests.helpers.source import ROOT

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers

SIMULATOR = ROOT / "engines" / "sim" / "tokenizer.json"


@pytest.fixture(scope="module")
def wordpiece(tmp_path_factory):
    return trained.wordpiece(tmp_path_factory.mktemp("tokenizers"))


def uncached(fetch):
    """A hub whose cache is empty, and which answers what `fetch` returns or raises."""

    def download(repository, file, *, local_files_only=False):
        if local_files_only:
            raise LocalEntryNotFoundError("not in the cache")
        return fetch()

    return download


def without_the_file(folder):
    """A folder with a tokenizer that only transformers can read."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "one", "two"]
    (folder / "vocab.txt").write_text("\n".join(words))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    return folder


class TestCounting:
    def test_special_tokens_are_counted_on_request(self, wordpiece):
        tokenizer = load(str(wordpiece))
        assert tokenizer.special_tokens == 2
        assert tokenizer.count(["the words", "the"]) == [2, 1]
        assert tokenizer.count(["the words", "the"], special=True) == [4, 3]

    def test_encoding_and_decoding_give_the_text_back(self, wordpiece):
        tokenizer = load(str(wordpiece))
        (ids,) = tokenizer.encode_batch(["the words"])
        assert tokenizer.encode_batch(["the words"]) == [ids]
        assert tokenizer.decode_batch([ids]) == ["the words"]
        assert [tokenizer.vocab()[tokenizer.token(number)] for number in ids] == ids

    def test_an_unused_id_has_no_token(self, wordpiece):
        assert load(str(wordpiece)).token(10**6) == ""

    @pytest.mark.slow
    def test_cutting_and_padding_that_a_file_asks_for_are_left_out(self, tmp_path):
        tokenizer = load(str(trained.unigram(tmp_path)))
        assert tokenizer.count(["the" + " the" * 99, "the"]) == [100, 1]


class TestFinding:
    def test_a_file_or_its_folder_is_the_same_tokenizer(self, wordpiece):
        of_file, of_folder = load(str(wordpiece)), load(str(wordpiece.parent))
        assert (
            of_file.sha256 == of_folder.sha256 == hashlib.sha256(wordpiece.read_bytes()).hexdigest()
        )

    def test_tokenizer_repr_has_its_name_and_size(self, wordpiece):
        tokenizer = load(str(wordpiece))
        assert repr(tokenizer) == f"<Tokenizer {wordpiece} {tokenizer.size} tokens>"

    def test_a_folder_without_the_file_goes_through_transformers(self, tmp_path):
        pytest.importorskip("transformers")
        assert load(str(without_the_file(tmp_path))).count(["one two"], special=True) == [4]

    def test_a_model_of_the_hub_without_the_file_goes_through_transformers(
        self, tmp_path, monkeypatch
    ):
        pytest.importorskip("transformers")
        asked = []

        def has_no_such_file():
            raise EntryNotFoundError("404 Client Error: tokenizer.json")

        def snapshot(repository, *, allow_patterns):
            asked.append(repository)
            return str(without_the_file(tmp_path))

        monkeypatch.setattr("huggingface_hub.hf_hub_download", uncached(has_no_such_file))
        monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
        monkeypatch.setattr(hub, "why_unavailable", lambda: None)
        assert load("some/model").count(["one two"], special=True) == [4]
        assert asked == ["some/model"]

    def test_without_the_hub_such_a_model_comes_from_its_cache(self, tmp_path, monkeypatch):
        pytest.importorskip("transformers")
        config = without_the_file(tmp_path) / "tokenizer_config.json"
        monkeypatch.setattr("huggingface_hub.hf_hub_download", uncached(None))
        monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: str(config))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        found = load("some/model")
        assert (found.name, found.folder) == ("some/model", tmp_path)
        assert found.count(["one two"], special=True) == [4]

    def test_the_model_names_the_tokenizer_unless_one_is_given(self, wordpiece):
        assert tokenizer_of(RunSettings(model=str(wordpiece))).name == str(wordpiece)
        assert tokenizer_of(RunSettings(model="served", tokenizer=str(SIMULATOR))).name == str(
            SIMULATOR
        )

    def test_a_name_is_looked_up_in_the_hubs_cache_first(self, wordpiece, monkeypatch):
        asked = []

        def cached(repository, file, *, local_files_only=False):
            asked.append((repository, file, local_files_only))
            return str(wordpiece)

        monkeypatch.setattr("huggingface_hub.hf_hub_download", cached)
        assert load("some/model").name == "some/model"
        assert asked == [("some/model", "tokenizer.json", True)]

    def test_a_name_that_is_not_cached_is_fetched(self, wordpiece, monkeypatch):
        monkeypatch.setattr("huggingface_hub.hf_hub_download", uncached(lambda: str(wordpiece)))
        monkeypatch.setattr(hub, "why_unavailable", lambda: None)
        assert load("some/model").size == load(str(wordpiece)).size


class TestBadInput:
    def refusal(self, name):
        with pytest.raises(BadInput) as refused:
            load(str(name))
        return str(refused.value)

    def test_neither_tokenizer_nor_model(self):
        with pytest.raises(BadInput, match="--tokenizer: is missing, and so is --model; give a"):
            tokenizer_of(RunSettings())

    @pytest.mark.parametrize(
        "name",
        [
            "/nowhere/tokenizer.json",
            "./nowhere",
            "tokenizer.json",
            "model.gguf",
            "some/model/folder",
        ],
    )
    def test_missing_path_is_refused(self, name):
        expected = (
            f"--tokenizer: file or folder {name} does not exist; give a tokenizer.json, "
            "its folder or a hub name"
        )
        assert self.refusal(name) == expected

    @pytest.mark.parametrize("content", ["", "[]", "{", "GGUF"])
    def test_a_file_of_something_else(self, tmp_path, content):
        path = tmp_path / "tokenizer.json"
        path.write_text(content)
        assert self.refusal(path).startswith(f"--tokenizer: {path} is not a tokenizer.json (")

    def test_a_folder_of_something_else(self, tmp_path):
        pytest.importorskip("transformers")
        message = self.refusal(tmp_path)
        assert message.startswith(
            f"--tokenizer: {tmp_path} has no tokenizer.json, and transformers cannot load it ("
        )
        assert "\n" not in message

    def test_a_name_that_the_hub_could_not_have(self):
        assert "invalid path or hub name 'no such name'; give" in self.refusal("no such name")

    def test_a_hub_that_cannot_be_reached(self, monkeypatch):
        monkeypatch.setattr(
            hub, "why_unavailable", lambda: "https://a.hub does not answer: timed out"
        )
        message = self.refusal("nobody/has-this-model")
        assert message.startswith(
            "--tokenizer: nobody/has-this-model is not a path, not in the cache of the hub, and "
            "the hub cannot be reached (https://a.hub does not answer: timed out); "
        )
        assert "served model's tokenizer.json, or of its .gguf file (pip install gguf)" in message

    def test_a_name_that_the_hub_does_not_know(self, monkeypatch):
        def refuse():
            raise OSError("404 Client Error\nRepository Not Found\nmore")

        monkeypatch.setattr("huggingface_hub.hf_hub_download", uncached(refuse))
        monkeypatch.setattr(hub, "why_unavailable", lambda: None)
        assert self.refusal("some/model").startswith(
            "--tokenizer: the hub does not have some/model (404 Client Error);"
        )
