"""The server's count of prompt tokens is predicted exactly where its chat template is known.

The reference renders and tokenizes the whole chat by `transformers`, as servers do; nothing here
adds up anything.
"""

import copy
import json
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.chat_template.prediction import TokenPrediction
from loadgen.workload.chat_template.template_tokens import TemplateTokens
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target
from tests.helpers import chat_templates
from tests.helpers import real_tokenizers as packages
from tests.helpers import trained_tokenizers as trained
from tests.workload.conftest import REAL, SIMULATOR

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers

LONG = 131072
CHAT = RunSettings(backend="openai-chat")
THOUGHTLESS = {"chat_template_kwargs": {"enable_thinking": False}}
WEATHER = {
    "tools": [
        {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    ]
}
TEMPLATES = chat_templates.ALL.items()


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param(make, marks=pytest.mark.real_data) for make in REAL),
        trained.wordpiece,
        trained.superwords,
    ],
    ids=lambda make: make.__name__,
)
def tokenizer_json(request, tmp_path_factory):
    kept = request.param in REAL
    try:
        return request.param(
            packages.kept_folder(request.config) if kept else tmp_path_factory.mktemp("tokenizers")
        )
    except ImportError as error:
        pytest.skip(f"{error}: pip install -e '.[real]'")


@pytest.fixture(scope="module", params=TEMPLATES, ids=lambda item: item[0])
def folder(request, tokenizer_json, tmp_path_factory):
    """A tokenizer with a template beside it."""
    where = tmp_path_factory.mktemp("served") / tokenizer_json.parent.name / request.param[0]
    return chat_templates.beside(tokenizer_json, request.param[1], where)


@pytest.fixture(scope="module")
def plain(tokenizer_json):
    """A data set of the tokenizer without a template: both take seconds to load."""
    return datasets.create(RunSettings(tokenizer=str(tokenizer_json)))


@pytest.fixture(scope="module")
def made(plain, folder):
    """A data set of the folder's tokenizer, with lengths of its own."""
    tokenizer = copy.copy(plain.tokenizer)
    tokenizer.folder = folder
    return structs.replace(plain, drawing=structs.replace(plain.drawing, tokenizer=tokenizer))


@pytest.fixture(scope="module")
def renderer():
    """Renders chats by any template; what its own tokens are makes no difference to the text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import PreTrainedTokenizerFast

        return PreTrainedTokenizerFast(tokenizer_file=str(SIMULATOR), bos_token="<s>")


@pytest.fixture(scope="module")
def reference(plain, folder, renderer):
    """Counts chats as a server does."""
    template = (folder / "chat_template.jinja").read_text()

    def count(prompt, **options):
        chat = list(prompt.messages) or [{"role": "user", "content": prompt.text}]
        told = {
            "chat_template": template,
            "tokenize": False,
            "add_generation_prompt": True,
        } | options
        return plain.tokenizer.count([renderer.apply_chat_template(chat, **told)])[0]

    return count


def target(asked=CHAT):
    return Target.from_settings(asked, "m")


def sized(dataset, inputs, seed=0):
    """The data set with other lengths and another seed, its words kept: finding them takes
    seconds.
    """
    from loadgen.workload.datasets.lengths import Lengths

    lengths = Lengths.parse("--random-input-len", inputs, less=dataset.tokenizer.special_tokens)
    return structs.replace(
        dataset, inputs=lengths, drawing=structs.replace(dataset.drawing, seed=seed)
    )


def predicted(dataset, asked=CHAT, count=3, told=None):
    counting = TokenPrediction.of(dataset, asked, target(asked), told)
    return list(counting.predict(counting.sized(dataset, asked).prompts(count)))


class TestExactness:
    @pytest.mark.slow
    @settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(length=st.integers(1, 3000), spread=st.integers(0, 500), seed=st.integers(0, 2**63 - 1))
    def test_prediction_equals_the_rendered_count(self, made, reference, length, spread, seed):
        prompts = predicted(sized(made, f"{length + 2}:{length + 2 + spread}", seed))
        assert [prompt.server_tokens for prompt in prompts] == [
            reference(prompt) for prompt in prompts
        ]

    @pytest.mark.slow
    @settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(length=st.integers(100, 3000), seed=st.integers(0, 2**63 - 1))
    def test_a_length_that_the_server_counts_is_exact(self, made, reference, length, seed):
        asked = CHAT.replace(input_len_counts="server")
        prompts = predicted(sized(made, length, seed), asked)
        assert [reference(prompt) for prompt in prompts] == [length] * 3
        assert [prompt.server_tokens for prompt in prompts] == [length] * 3
        raw = made.tokenizer.count([prompt.text for prompt in prompts], special=True)
        assert raw == [prompt.input_tokens for prompt in prompts]

    @pytest.mark.slow
    def test_a_prompt_of_128k_is_exact(self, made, reference):
        (prompt,) = predicted(sized(made, LONG), CHAT.replace(input_len_counts="server"), count=1)
        assert reference(prompt) == prompt.server_tokens == LONG

    def test_a_chat_that_is_embedded_has_no_start_of_an_answer(self, made, reference):
        (prompt,) = predicted(
            sized(made, 20), RunSettings(backend="openai-embeddings-chat"), count=1
        )
        assert prompt.server_tokens == reference(prompt, add_generation_prompt=False)

    def test_texts_of_any_kind_are_counted_one_by_one(self, made, reference):
        texts = [
            "",
            " ",
            "\n\nwords",
            "  the words  ",
            "é😀",
            "<|endoftext|>",
            "<s>[INST] </s>",
            "[SEP]",
            "<|im_end|>\n",
        ]
        prompts = [Prompt(text, 0, 1, "test") for text in texts]
        chat = tuple(
            {"role": role, "content": role} for role in ("system", "user", "assistant", "user")
        )
        prompts.append(Prompt("", 0, 1, "test", chat))
        counting = TokenPrediction.of(made, CHAT, target())
        assert [p.server_tokens for p in counting.predict(prompts)] == [
            reference(prompt) for prompt in prompts
        ]

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("body", "options"),
        [(THOUGHTLESS, {"enable_thinking": False}), (WEATHER, WEATHER)],
        ids=["no thinking", "tools"],
    )
    def test_template_receives_the_options_of_the_request(self, made, reference, body, options):
        asked = CHAT.replace(extra_body=body)
        (prompt,) = predicted(sized(made, 50), asked, count=1)
        assert prompt.server_tokens == reference(prompt, **options)

    @pytest.mark.slow
    def test_without_template_text_and_special_tokens_count(self, made):
        asked = RunSettings(backend="openai", input_len_counts="server")
        prompts = predicted(sized(made, "20:90"), asked)
        raw = made.tokenizer.count([prompt.text for prompt in prompts], special=True)
        assert (
            raw
            == [prompt.server_tokens for prompt in prompts]
            == [prompt.input_tokens for prompt in prompts]
        )


@pytest.mark.real_data
class TestKnownTemplateTokens:
    """What was read off real servers."""

    @pytest.mark.parametrize(
        ("body", "tokens"), [({}, 8), (THOUGHTLESS, 12)], ids=["thinking", "no thinking"]
    )
    def test_qwen3_overhead_is_predicted(self, request, tmp_path, body, tokens):
        try:
            tokenizer = packages.qwen3(packages.kept_folder(request.config))
        except ImportError as error:
            pytest.skip(f"{error}: pip install -e '.[real]'")
        folder = chat_templates.beside(tokenizer, chat_templates.MARKS, tmp_path)
        made = datasets.create(RunSettings(tokenizer=str(folder)))
        assert (
            TokenPrediction.of(
                made, CHAT, target(CHAT.replace(extra_body=body))
            ).template_tokens.tokens
            == tokens
        )


@pytest.fixture
def simulated(tmp_path):
    """The simulator's tokenizer with a template beside it, of 4 tokens."""
    folder = chat_templates.beside(
        SIMULATOR, "{% for m in messages %}<>{{ m.content }}</{% endfor %}", tmp_path
    )
    return datasets.create(RunSettings(tokenizer=str(folder), random_input_len=20))


class TestKnowing:
    def test_only_fields_that_the_template_reads_make_a_prompt_unknown(self, simulated):
        counting = TokenPrediction.of(simulated, CHAT, target())
        tools, plain = (
            {"tools": [{"type": "function"}]},
            {"response_format": {"type": "json_object"}},
        )
        prompts = [Prompt("a", 1, 1, "test", fields=fields) for fields in ({}, plain, tools)]
        assert [prompt.server_tokens for prompt in counting.predict(prompts)] == [5, 5, None]

    def test_constant_template_is_not_rendered_for_each(self, simulated, monkeypatch):
        counting = TokenPrediction.of(simulated, CHAT, target())
        monkeypatch.setattr(type(counting.template), "count", None)
        prompts = counting.predict(counting.sized(simulated, CHAT).prompts(5))
        assert [prompt.server_tokens for prompt in prompts] == [24] * 5

    def test_varying_template_is_rendered_for_each_prompt(self, tmp_path):
        """As where a SentencePiece vocabulary has a word behind a space only, and the template
        ends with a line.
        """
        template = "{% if messages[0].content < 'm' %}! {% endif %}{{ messages[0].content }}"
        made = datasets.create(
            RunSettings(tokenizer=str(chat_templates.beside(SIMULATOR, template, tmp_path)))
        )
        prompts = predicted(made, count=50)
        assert {prompt.server_tokens - prompt.input_tokens for prompt in prompts} == {0, 1}
        prompts = predicted(sized(made, 90), CHAT.replace(input_len_counts="server"), count=50)
        assert {(prompt.server_tokens, prompt.input_tokens) for prompt in prompts} == {
            (90, 89),
            (90, 90),
        }

    def test_prediction_is_unknown_without_a_chat_template(self):
        made = datasets.create(RunSettings(tokenizer=str(SIMULATOR)))
        assert [prompt.server_tokens for prompt in predicted(made)] == [None] * 3
        assert "has no chat template" in TokenPrediction.of(made, CHAT, target()).unknown

    def test_a_template_that_cannot_be_used_is_no_reason_not_to_run(self, tmp_path):
        folder = chat_templates.beside(SIMULATOR, "{{ raise_exception('no') }}", tmp_path)
        made = datasets.create(RunSettings(tokenizer=str(folder)))
        counting = TokenPrediction.of(made, CHAT, target())
        assert counting.template is None
        assert "cannot be rendered (no)" in counting.provenance()["server_tokens"]["unknown"]

    def test_known_overhead_needs_no_template(self):
        made = datasets.create(RunSettings(tokenizer=str(SIMULATOR), random_input_len=20))
        prompts = predicted(
            made, CHAT.replace(input_len_counts="server"), told=TemplateTokens(3, "told")
        )
        assert [(prompt.input_tokens, prompt.server_tokens) for prompt in prompts] == [(17, 20)] * 3

    def test_single_overhead_does_not_predict_several_messages(self):
        chat = Prompt("", 9, 1, "test", ({"role": "user", "content": "a"},))
        (prompt,) = TokenPrediction(TemplateTokens(3, "told")).predict([chat])
        assert prompt.server_tokens is None

    def test_server_tokens_from_the_data_set_are_kept(self, simulated):
        (prompt,) = TokenPrediction.of(simulated, CHAT, target()).predict(
            [Prompt("a", 1, 1, "test", server_tokens=77)]
        )
        assert prompt.server_tokens == 77

    def test_a_data_set_without_a_tokenizer_is_not_looked_into(self):
        class Plain:
            def prompts(self, count):
                yield from (Prompt("a", 1, 1, "test") for _ in range(count))

            def provenance(self):
                return {}

        assert [prompt.server_tokens for prompt in predicted(Plain())] == [None] * 3

    def test_repeated_prefixes_have_a_tokenizer_and_so_are_counted(self, simulated):
        folder = str(simulated.tokenizer.folder)
        made = datasets.create(RunSettings(dataset_name="prefix_repetition", tokenizer=folder))
        assert [prompt.server_tokens for prompt in predicted(made)] == [512 + 4] * 3

    def test_equal_prompts_are_counted_each(self, simulated):
        prompts = list(
            TokenPrediction.of(simulated, CHAT, target()).predict([Prompt("a", 1, 1, "x")] * 200)
        )
        assert [prompt.server_tokens for prompt in prompts] == [5] * 200

    def test_the_source_stands_in_the_provenance(self, simulated):
        said = TokenPrediction.of(simulated, CHAT, target()).provenance()["server_tokens"]
        assert said["overhead"] == 4
        assert said["source"].endswith("chat_template.jinja")
        assert len(said["template_sha256"]) == 64
        assert said["unknown"] is None


class TestBadInput:
    def test_length_below_the_template_is_refused(self, simulated):
        with pytest.raises(BadInput) as refused:
            predicted(sized(simulated, 4), CHAT.replace(input_len_counts="server"))
        assert str(refused.value) == (
            "--random-input-len: 4 leaves no token after 4 of the chat template; give at least 5"
        )

    def test_single_count_needs_additive_tokens(self, tmp_path):
        made = datasets.create(RunSettings(tokenizer=str(trained.superwords(tmp_path))))
        with pytest.raises(
            BadInput, match=r"--input-len-counts: .* joins words into tokens, .*; give the folder"
        ):
            predicted(made, CHAT.replace(input_len_counts="server"), told=TemplateTokens(3, "told"))

    def test_dataset_with_own_lengths_cannot_be_sized(self, tmp_path):
        turns = [
            {"from": "human", "value": "one two three four"},
            {"from": "gpt", "value": "a b c d"},
        ]
        (tmp_path / "s.json").write_text(json.dumps([{"conversations": turns}]))
        asked = CHAT.replace(
            dataset_name="sharegpt", dataset_path=str(tmp_path / "s.json"), tokenizer=str(SIMULATOR)
        )
        made = datasets.create(asked)
        assert [
            p.server_tokens for p in predicted(made, asked, told=TemplateTokens(3, "told"))
        ] == [7] * 3
        with pytest.raises(
            BadInput,
            match="the data set sharegpt cannot make prompts of a length by the server's count; "
            "leave it out",
        ):
            predicted(
                made, asked.replace(input_len_counts="server"), told=TemplateTokens(3, "told")
            )
