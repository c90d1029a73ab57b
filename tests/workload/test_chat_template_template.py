"""A chat template is found beside its tokenizer and renders as `transformers` does."""

import json
import time
import warnings

import pytest

from loadgen.errors import BadInput
from loadgen.workload.chat_template.template import ChatTemplate
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers import chat_templates
from tests.helpers import trained_tokenizers as trained

CHATS = {
    "one": [{"role": "user", "content": "the words"}],
    "spaces": [{"role": "user", "content": "  two\n\n"}],
    "several": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "why?"},
        {"role": "assistant", "content": "é😀"},
        {"role": "user", "content": "<|im_end|> {{ 7 * 7 }}"},
    ],
}
TOOLS = [{"type": "function", "function": {"name": "é<b>", "parameters": {"type": "object"}}}]
ODD = {
    "blocks": "{% for m in messages %}\n    {% if true %}\n  {{ m.content }}\n    {% endif %}\n{% "
    "endfor %}\n",
    "generation": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% "
    "endfor %}",
    "break": "{% for m in messages %}{{ m.content }}{% break %}{% endfor %}",
    "json": "{{ messages | tojson }}{{ tools | tojson(indent=2) }}",
    "specials": "{{ bos_token }}{{ eos_token }}{{ unk_token }}",
    "namespace": "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% "
    "endfor %}{{ ns.n }}",
    "prompted": "{{ messages[0].content }}{% if add_generation_prompt %}>{% endif %}",
    "thinking": "{{ enable_thinking is defined and not enable_thinking }}",
    "undefined": "{{ documents }}{{ nothing }}",
}


@pytest.fixture(scope="module")
def tokenizer_json(tmp_path_factory):
    return trained.wordpiece(tmp_path_factory.mktemp("tokenizers"))


@pytest.fixture
def template(tokenizer_json, tmp_path):
    """Makes the template of a folder that holds this one."""

    def made(text, **config):
        tokens = {"eos_token": {"content": "</s>", "lstrip": False}, "unk_token": "[UNK]"}
        return ChatTemplate.of(
            load(str(chat_templates.beside(tokenizer_json, text, tmp_path, **tokens, **config)))
        )

    return made


def reference(tokenizer_json, text, messages, **options):
    """What `transformers` makes of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import PreTrainedTokenizerFast

        tokenizer = PreTrainedTokenizerFast(
            tokenizer_file=str(tokenizer_json), bos_token="<s>", eos_token="</s>", unk_token="[UNK]"
        )
        return tokenizer.apply_chat_template(
            messages, chat_template=text, tokenize=False, add_generation_prompt=True, **options
        )


class TestRendering:
    @pytest.mark.slow
    @pytest.mark.parametrize("chat", CHATS.values(), ids=CHATS)
    @pytest.mark.parametrize(
        "text", (chat_templates.ALL | ODD).values(), ids=chat_templates.ALL | ODD
    )
    @pytest.mark.parametrize("options", [{}, {"enable_thinking": False}, {"tools": TOOLS}], ids=str)
    def test_is_that_of_transformers(self, template, tokenizer_json, text, chat, options):
        assert template(text).render(chat, **options) == reference(
            tokenizer_json, text, chat, **options
        )

    def test_the_date_is_that_of_today(self, template):
        today = time.strftime("%Y-%m-%d")
        rendered = template("{{ strftime_now('%Y-%m-%d') }}").render(CHATS["one"])
        assert rendered in (today, time.strftime("%Y-%m-%d"))

    def test_a_caller_may_leave_the_prompt_of_the_answer_out(self, template):
        assert (
            template(ODD["prompted"]).render(CHATS["one"], add_generation_prompt=False)
            == "the words"
        )

    @pytest.mark.parametrize(
        "text",
        [
            "{{ ''.__class__.__mro__[1].__subclasses__() }}",
            "{{ messages.append(1) }}",
            "{% for i in range(10**9) %}{% endfor %}",
            "{% include 'other' %}",
            "{{ cycler.__init__.__globals__ }}",
        ],
    )
    def test_template_can_use_only_its_arguments(self, template, text):
        with pytest.raises(BadInput, match="cannot be rendered"):
            template(text).render(CHATS["one"])


class TestCounting:
    def test_special_tokens_in_text_count_as_read(self, template):
        made = template("{% for m in messages %}{{ m.content }}{% endfor %}")
        chats = [
            [{"role": "user", "content": text}]
            for text in ("[SEP]", "the [SEP][SEP] the", "[ SEP ]")
        ]
        assert made.count(chats)[:2] == [1, 4]
        assert made.count(chats)[2] > 1

    def test_added_tokens_are_chat_minus_text_with_special_tokens(self, template):
        made = template("{% for m in messages %}the {{ m.content }} the the{% endfor %}")
        assert made.added_tokens(["words", "the", "words the"]) == (3 - 2,)

    def test_added_tokens_of_probes_may_differ(self, template):
        made = template("{% for m in messages %}{{ m.content }} {{ m.content }}{% endfor %}")
        assert made.added_tokens(["the", "the the", "the"]) == (-1, 0)


class TestFinding:
    def of(self, folder, **options):
        return ChatTemplate.of(load(str(folder)), **options)

    @pytest.fixture
    def folder(self, tokenizer_json, tmp_path):
        (tmp_path / "tokenizer.json").write_bytes(tokenizer_json.read_bytes())
        return tmp_path

    def config(self, folder, **config):
        (folder / "tokenizer_config.json").write_text(json.dumps(config))

    def test_where_there_is_none_there_is_none(self, folder):
        assert self.of(folder) is None
        self.config(folder, bos_token="<s>")
        assert self.of(folder) is None

    def test_template_is_read_from_the_configuration(self, folder):
        self.config(folder, chat_template="{{ bos_token }}!", bos_token={"content": "<s>"})
        assert self.of(folder).render([]) == "<s>!"
        assert self.of(folder).name == str(folder / "tokenizer_config.json")

    def test_or_in_a_file_of_its_own_which_wins(self, folder):
        self.config(folder, chat_template="config")
        (folder / "chat_template.jinja").write_text("file")
        assert self.of(folder).render([]) == "file"

    def test_beside_a_tokenizer_json_given_by_its_path_too(self, folder):
        (folder / "chat_template.jinja").write_text("file")
        assert self.of(folder / "tokenizer.json").name == str(folder / "chat_template.jinja")

    def test_default_template_and_tool_template(self, folder):
        both = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain"}]
        self.config(folder, chat_template=both)
        assert self.of(folder).render([]) == "plain"
        assert self.of(folder, tools=True).render([]) == "tools"
        self.config(folder, chat_template=both[1:])
        assert self.of(folder, tools=True).render([]) == "plain"

    def test_template_is_read_from_the_hub_cache(self, folder, monkeypatch):
        (folder / "chat_template.jinja").write_text("cached")
        cached = str(folder / "tokenizer.json")
        monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_, **__: cached)
        assert self.of("some/model").render([]) == "cached"

    def test_its_hash_is_that_of_its_text(self, folder):
        (folder / "chat_template.jinja").write_text("one")
        one = self.of(folder).sha256
        (folder / "chat_template.jinja").write_text("two")
        assert self.of(folder).sha256 != one


class TestBadInput:
    def test_invalid_template_is_refused(self, template):
        with pytest.raises(
            BadInput, match=r"--tokenizer: .*jinja is not a chat template \(.*\); give the folder"
        ):
            template("{% for %}").render([])

    def test_refusal_of_a_template_is_quoted(self, template):
        with pytest.raises(BadInput, match=r"cannot be rendered \(roles must alternate\)"):
            template("{{ raise_exception('roles must\n alternate') }}").render([])

    @pytest.mark.parametrize("content", ["{", "[]", "\udcff"])
    def test_a_configuration_of_something_else_is_refused(self, tokenizer_json, tmp_path, content):
        (tmp_path / "tokenizer.json").write_bytes(tokenizer_json.read_bytes())
        (tmp_path / "tokenizer_config.json").write_text(content, errors="surrogateescape")
        with pytest.raises(BadInput, match=r"--tokenizer: .*tokenizer_config.json"):
            ChatTemplate.of(load(str(tmp_path)))
