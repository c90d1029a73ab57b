"""The process that finds the facts of a tokenizer, before the preparer asks for them."""

import io
import sys
from types import SimpleNamespace

import pytest

from loadgen.config.settings import RunSettings
from loadgen.runner import facts_main
from loadgen.runner.prompt_source import PromptSource
from loadgen.util import child_process
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target
from loadgen.workload.tokenizer import exact_text
from loadgen.workload.tokenizer.tokenizer import Tokenizer, load
from tests.helpers import trained_tokenizers as trained

# Tokenizers take most of its time.
pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def folder(tmp_path):
    return trained.with_template(tmp_path)


def run_facts_process(line, monkeypatch):
    """Run what the facts process runs, with this line on its standard input."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(line)))
    monkeypatch.setattr(child_process, "name_process", lambda role: None)
    facts_main.run()


def test_facts_process_finds_all_that_a_run_of_random_words_needs(folder, monkeypatch):
    run_facts_process(f"{folder / 'tokenizer.json'}\n".encode(), monkeypatch)
    monkeypatch.setattr(
        Tokenizer, "_core", property(lambda tokenizer: pytest.fail("the tokenizer was parsed"))
    )
    settings = RunSettings(
        backend="openai-chat", tokenizer=str(folder), num_prompts=3, random_input_len=40
    )
    source = PromptSource.named(settings, Target.from_settings(settings, "m"), 3, asks=False)
    tokenizer = source.ends.tokenizer
    prompt = Prompt(
        " ".join(exact_text.words_of(tokenizer).items[:40]),
        40 + tokenizer.special_tokens,
        8,
        "words",
    )
    assert source.ends.tokenize(prompt).tokens > 40


@pytest.mark.parametrize("content", [None, "{}", "no JSON"])
def test_facts_process_leaves_errors_to_the_preparer(tmp_path, monkeypatch, capsys, content):
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    run_facts_process(f"{tmp_path / 'tokenizer.json'}\n".encode(), monkeypatch)
    assert capsys.readouterr() == ("", "")


def test_facts_process_is_wanted_until_the_words_are_known(folder):
    settings = RunSettings(tokenizer=str(folder))
    assert facts_main.unknown_file(settings) == folder / "tokenizer.json"
    exact_text.words_of(load(str(folder)))
    assert facts_main.unknown_file(settings) is None


def test_facts_process_is_not_wanted_for_other_data_hub_names_and_missing_files(folder):
    for settings in (
        RunSettings(tokenizer=str(folder), dataset_name="sharegpt"),
        RunSettings(tokenizer="an-organization/a-model"),
        RunSettings(tokenizer=str(folder / "no.json")),
        RunSettings(tokenizer="none"),
        RunSettings(model="a-model"),
    ):
        assert facts_main.unknown_file(settings) is None
