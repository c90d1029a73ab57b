"""Prompts are sent as they are, with the chat template around them, or as token ids, and their
lengths are exact.
"""

import json

import pytest
from msgspec import structs

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.runner.prompt_source import PromptSource
from loadgen.workload.prompt import ANSWER, Prompt
from loadgen.workload.prompt_form import PromptForm
from loadgen.workload.target import Target
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers import chat_templates
from tests.helpers import trained_tokenizers as trained
from tests.workload.conftest import SIMULATOR

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers

RENDERED = {"render_chat_template": "whole", "backend": "openai"}
ROWS = [
    {"prompt": "Name a river."},
    {"messages": [{"role": "system", "content": "Be brief."}], "output_tokens": 4},
]


@pytest.fixture(scope="module", params=["marks", "brackets", "instructed"])
def folder(request, tmp_path_factory):
    """A tokenizer with a template beside it."""
    where = tmp_path_factory.mktemp("served") / request.param
    return chat_templates.beside(SIMULATOR, chat_templates.ALL[request.param], where)


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return {"dataset_name": "jsonl", "dataset_path": str(path)}


def prompts(count=4, **options):
    settings = RunSettings(**options)
    return list(
        PromptSource.named(settings, Target.from_settings(settings, "m"), count, asks=False).prompts
    )


def told(**options):
    with pytest.raises(BadInput) as refused:
        prompts(**options)
    return str(refused.value)


class TestTemplate:
    def test_it_is_around_each_prompt_and_counted(self, folder, rows):
        first, second = prompts(2, tokenizer=str(folder), **RENDERED, **rows)
        assert "Name a river." in first.text
        assert first.text != "Name a river."
        assert (second.messages, second.output_tokens) == ((), 4)
        counted = load(str(folder)).count([first.text, second.text], special=True)
        assert [first.input_tokens, second.input_tokens] == counted
        assert [first.server_tokens, second.server_tokens] == counted

    @pytest.mark.parametrize("name", ["random", "prefix_repetition", "prose"])
    def test_lengths_count_it_where_the_settings_say_so(self, folder, name):
        asked = {
            "random_input_len": 90,
            "prefix_repetition_prefix_len": 30,
            "prefix_repetition_suffix_len": 60,
        }
        asked |= {"sonnet_input_len": 90, "sonnet_prefix_len": 20}
        made = prompts(
            tokenizer=str(folder), dataset_name=name, input_len_counts="server", **RENDERED, **asked
        )
        assert {prompt.input_tokens for prompt in made} == {90}
        assert load(str(folder)).count([prompt.text for prompt in made], special=True) == [90] * 4

    def test_variables_of_a_request_reach_it(self, rows, tmp_path):
        folder = chat_templates.beside(SIMULATOR, chat_templates.MARKS, tmp_path / "marks")
        body = {"chat_template_kwargs": {"enable_thinking": False}}
        first, _ = prompts(2, tokenizer=str(folder), extra_body=body, **RENDERED, **rows)
        assert first.text.endswith("<think>\n\n</think>\n\n")

    def test_the_beginning_of_sequence_may_be_left_to_the_server(self, rows, tmp_path):
        folder = chat_templates.beside(SIMULATOR, chat_templates.BRACKETS, tmp_path / "brackets")
        whole, without = (
            prompts(
                2, tokenizer=str(folder), **RENDERED | {"render_chat_template": rendering}, **rows
            )[0]
            for rendering in ("whole", "without-bos")
        )
        assert (whole.text, without.text) == (
            "<s>[INST] Name a river. [/INST]",
            "[INST] Name a river. [/INST]",
        )

    def test_in_a_chat_the_server_counts_it_twice(self, rows, tmp_path):
        folder = chat_templates.beside(SIMULATOR, chat_templates.MARKS, tmp_path / "marks")
        first, _ = prompts(
            2, tokenizer=str(folder), **RENDERED | {"backend": "openai-chat"}, **rows
        )
        around = first.server_tokens - first.input_tokens
        assert around == first.input_tokens - load(str(folder)).count(["Name a river."])[0]

    def test_what_cannot_be_rendered_is_refused(self, folder, rows):
        line = told(tokenizer=str(SIMULATOR), **RENDERED, **rows)
        assert line.startswith("--render-chat-template: the tokenizer ")
        assert "has no chat template" in line
        assert told(tokenizer="none", **RENDERED, **rows).startswith(
            "--render-chat-template: needs a tokenizer"
        )
        chat = RENDERED | {"backend": "openai-chat", "input_len_counts": "server"}
        assert told(tokenizer=str(folder), **chat).startswith("--input-len-counts: ")

    def test_an_answer_of_the_server_cannot_be_rendered_before_the_run(self, folder):
        settings = RunSettings(tokenizer=str(folder), **RENDERED)
        form = PromptForm.of(None, settings, Target.from_settings(settings, "m"))
        turn = Prompt("b", 1, 1, "x", messages=({"role": "assistant", "content": ANSWER},))
        with pytest.raises(
            BadInput, match="--render-chat-template: a later turn of a session repeats an answer"
        ):
            list(form.apply([turn]))


class TestIds:
    @pytest.mark.parametrize("backend", ["openai", "sglang-native"])
    @pytest.mark.parametrize(
        "make", [lambda folder: SIMULATOR, trained.unigram, trained.superwords]
    )
    def test_there_are_exactly_as_many_as_asked_for(self, make, backend, tmp_path):
        tokenizer = load(str(make(tmp_path)))
        asked = {"random_input_len": "20:60", "random_prefix_len": 9, "backend": backend}
        made = prompts(30, tokenizer=tokenizer.name, prompt_token_ids=True, **asked)
        texts = prompts(30, tokenizer=tokenizer.name, **asked)
        assert [prompt.input_tokens for prompt in made] == [prompt.input_tokens for prompt in texts]
        assert [list(p.token_ids) for p in made] == tokenizer.encode_batch(
            [p.text for p in texts], special=True
        )
        assert [structs.replace(prompt, token_ids=()) for prompt in made] == texts

    def test_of_a_rendered_prompt_they_are_those_of_the_template_and_the_text(self, folder, rows):
        first, _ = prompts(2, tokenizer=str(folder), prompt_token_ids=True, **RENDERED, **rows)
        (ids,) = load(str(folder)).encode_batch([first.text], special=True)
        assert list(first.token_ids) == ids

    def test_a_chat_has_none(self):
        line = told(tokenizer=str(SIMULATOR), prompt_token_ids=True, backend="openai-chat")
        assert line.startswith(
            "--prompt-token-ids: a chat has messages, not token ids; use --backend openai "
        )

    @pytest.mark.parametrize("backend", ["openai-embeddings", "vllm-pooling", "openai-responses"])
    def test_an_api_that_takes_none_is_refused(self, backend):
        line = told(tokenizer=str(SIMULATOR), prompt_token_ids=True, backend=backend)
        assert line.startswith("--prompt-token-ids: ")
        assert line.endswith("; use --backend openai or sglang-native, or leave it out")

    def test_a_chat_is_refused_as_without_it(self, rows):
        line = told(tokenizer=str(SIMULATOR), prompt_token_ids=True, backend="openai", **rows)
        assert "its prompts are chats" in line


def test_as_they_are_nothing_is_encoded():
    assert prompts(3, tokenizer=str(SIMULATOR)) == prompts(
        3, tokenizer=str(SIMULATOR), backend="openai"
    )
    assert PromptForm().provenance() == {}
