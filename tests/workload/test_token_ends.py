"""The tokens of prompts as a server sees them, with and without the chat template."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from loadgen.config.settings import RunSettings
from loadgen.workload import datasets
from loadgen.workload.chat_template.template import ChatTemplate
from loadgen.workload.prefix_cache.token_ends import TokenEnds
from loadgen.workload.prompt import ANSWER, UNPLANNED, Prompt
from loadgen.workload.tokenizer.tokenizer import Tokenizer, load
from tests.helpers import chat_templates
from tests.helpers.command_line import TOKENIZER

RANDOM = RunSettings(tokenizer=TOKENIZER, random_input_len=20)


@pytest.fixture
def tokenizer() -> Tokenizer:
    return load(TOKENIZER)


def templated(folder: Path) -> TokenEnds:
    made = load(str(chat_templates.beside(Path(TOKENIZER), chat_templates.MARKS, folder)))
    return TokenEnds(made, ChatTemplate.of(made))


def test_words_end_where_the_tokenizer_says(tokenizer: Tokenizer) -> None:
    (prompt,) = datasets.create(RANDOM).prompts(1)
    found, encoded = TokenEnds(tokenizer).tokenize(prompt), tokenizer.ends([prompt.text])[0]
    assert found is not None
    assert found.ends.tolist() == encoded
    assert (found.tokens, found.before) == (20, 0)


def test_random_words_are_not_encoded(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (prompt,) = datasets.create(RANDOM).prompts(1)
    monkeypatch.setattr(tokenizer, "ends", None)
    assert TokenEnds(tokenizer).tokenize(prompt) is not None


@pytest.mark.parametrize("text", ["It's no list of words, is it?", "über alles", ""])
def test_other_texts_are_encoded(tokenizer: Tokenizer, text: str) -> None:
    found = TokenEnds(tokenizer, before=3).tokenize(
        Prompt(text, tokenizer.count([text])[0], 1, "a")
    )
    assert found is not None
    assert found.ends.tolist() == tokenizer.ends([text])[0]
    assert found.tokens == 3 + tokenizer.count([text])[0]


def test_a_chat_is_tokenized_with_its_template(tmp_path: Path) -> None:
    ends, (prompt,) = templated(tmp_path), datasets.create(RANDOM).prompts(1)
    found = ends.tokenize(prompt)
    assert found is not None
    assert ends.template is not None
    rendered = ends.template.render(({"role": "user", "content": prompt.text},))
    assert (found.text, found.ends.tolist()) == (rendered, ends.tokenizer.ends([rendered])[0])


def test_turns_of_a_session_repeat_its_answers(tmp_path: Path) -> None:
    settings = RunSettings(
        tokenizer=TOKENIZER, dataset_name="multi_turn", turns="3", random_output_len=5
    )
    ends, prompts = templated(tmp_path), datasets.create(settings).prompts(6)
    made = [ends.tokenize(prompt) for prompt in prompts]
    assert all(made)
    for first, second, third in (made[:3], made[3:]):
        assert first is not None
        assert second is not None
        assert third is not None
        assert first.answered == 0
        assert second.text.startswith(first.text)
        assert third.text.startswith(second.text)
        assert second.answered == len(first.ends) + 5
        assert third.answered == len(second.ends) + 5


def test_a_request_repeats_the_answers_of_the_conversation_that_it_goes_on_with(
    tokenizer: Tokenizer,
) -> None:
    def asked(answers: int, *after: int, tokens: int) -> Prompt:
        messages = [{"role": "assistant", "content": ANSWER}] * answers + [
            {"role": "user", "content": "word"}
        ]
        return Prompt("", UNPLANNED, tokens, "a", tuple(messages), after=after)

    ends = TokenEnds(tokenizer)
    prompts = [
        asked(0, tokens=3),
        asked(1, 1, tokens=5),
        asked(1, 2, tokens=7),
        asked(2, 2, 1, tokens=9),
    ]
    made = [ends.tokenize(prompt) for prompt in prompts]
    assert [found and found.answered for found in made] == [0, 3, 3, 8]


@pytest.mark.parametrize(
    "changes",
    [{"fields": {"tools": []}}, {"messages": ({"role": "assistant", "tool_calls": [{}]},)}],
    ids=str,
)
def test_what_templates_make_of_tools_is_not_known(
    tokenizer: Tokenizer, changes: dict[str, Any]
) -> None:
    prompt = Prompt("", UNPLANNED, 1, "a", ({"role": "user", "content": "word"},))
    assert TokenEnds(tokenizer).tokenize(prompt) is not None
    assert TokenEnds(tokenizer).tokenize(structs.replace(prompt, **changes)) is None


def test_a_chat_without_a_template_is_its_texts(tokenizer: Tokenizer) -> None:
    messages = (
        {"role": "system", "content": "One two"},
        {"role": "user", "content": [{"type": "text", "text": "3"}]},
    )
    found = TokenEnds(tokenizer).tokenize(Prompt("", UNPLANNED, 1, "a", messages))
    assert found is not None
    assert found.text == "One two3"


def test_a_template_that_leaves_messages_out_tells_nothing(tmp_path: Path) -> None:
    made = load(str(chat_templates.beside(Path(TOKENIZER), "{{ messages[-1].content }}", tmp_path)))
    messages = ({"role": "system", "content": "a"}, {"role": "user", "content": "b"})
    assert (
        TokenEnds(made, ChatTemplate.of(made)).tokenize(Prompt("", UNPLANNED, 1, "a", messages))
        is None
    )
