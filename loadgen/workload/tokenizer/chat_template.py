"""Chat templates: what a server makes of messages before it counts their tokens."""

import datetime
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from loadgen.errors import BadInput
from loadgen.workload.tokenizer.tokenizer import FIELD, TEMPLATES, Tokenizer

if TYPE_CHECKING:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

FILE, CONFIG = TEMPLATES
REMEDY = "name the folder of the served model's tokenizer, with its chat template"
SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
Message = dict[str, Any]


class Template:
    """The chat template of a tokenizer, rendered as Hugging Face's `transformers` and the servers that use it do.

    Args:
        text: The template, in Jinja.
        tokenizer: What counts the tokens of what comes out.
        name: Where it comes from, for people.
        special: The special tokens that it may name, such as `bos_token`.

    Attributes:
        name: As given.
        sha256: Hash of its text, in hex.

    Raises:
        BadInput: It is no template.
    """

    def __init__(self, text: str, tokenizer: Tokenizer, name: str, special: dict[str, str] | None = None) -> None:
        from jinja2 import TemplateError

        self.name, self.sha256 = name, hashlib.sha256(text.encode()).hexdigest()
        self._tokenizer, self._special = tokenizer, special or {}
        try:
            self._template = _environment().from_string(text)
        except TemplateError as error:
            raise BadInput(FIELD, f"{name} is no chat template ({_one_line(error)})", REMEDY) from error

    def __repr__(self) -> str:
        return f"<Template {self.name}>"

    @classmethod
    def of(cls, tokenizer: Tokenizer, *, tools: bool = False) -> "Template | None":
        """Return the template that lies in the tokenizer's folder, or with it in a model's file; None without one.

        Args:
            tokenizer: With or without a folder.
            tools: Whether tools are given, for which some models have a template of their own.

        Raises:
            BadInput: There is one that cannot be read.
        """
        folder, inside = tokenizer.folder, tokenizer.inside
        if inside is not None and inside.template is not None:
            return cls(inside.template, tokenizer, tokenizer.name, inside.special)
        if folder is None:
            return None
        config = _config(folder / CONFIG)
        found, path = _named(config.get("chat_template"), tools), folder / CONFIG
        if (folder / FILE).is_file():
            path = folder / FILE
            found = _text(path)
        if found is None:
            return None
        special = {name: text for name in SPECIAL if (text := _token(config.get(name))) is not None}
        return cls(found, tokenizer, str(path), special)

    def render(self, messages: Sequence[Message], **options: Any) -> str:
        """Return the text that a server makes of messages, up to where the answer begins.

        Args:
            messages: Each with `role` and `content`.
            options: What else the template is told: `tools`, and the `chat_template_kwargs` of the request.

        Raises:
            BadInput: The template refuses them.
        """
        from jinja2 import TemplateError

        told = {"tools": None, "documents": None, "add_generation_prompt": True} | self._special | options
        try:
            return self._template.render(messages=messages, **told)
        except (TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            problem = f"the chat template {self.name} cannot be rendered ({_one_line(error)})"
            raise BadInput(FIELD, problem, REMEDY) from error

    def count(self, chats: Iterable[Sequence[Message]], **options: Any) -> list[int]:
        """Return the tokens of each chat as a server counts them; `options` are those of `render`.

        Raises:
            BadInput: The template refuses a chat.
        """
        return self._tokenizer.count([self.render(chat, **options) for chat in chats])

    def overhead(self, probes: Sequence[str], **options: Any) -> tuple[int, ...]:
        """Return the tokens that a text has more as the only message of a chat than as a prompt by itself.

        Args:
            probes: Texts to try, at least one.
            options: Those of `render`.

        Returns:
            The differences between chats and their texts with the tokenizer's special tokens, each once and ascending:
            a single one, unless tokens of the template and of a text are joined. Below 0 where a template leaves
            special tokens out.

        Raises:
            BadInput: The template refuses a text.
        """
        templated = self.count(([user(text)] for text in probes), **options)
        raw = self._tokenizer.count(probes, special=True)
        return tuple(sorted({chat - alone for chat, alone in zip(templated, raw, strict=True)}))


def user(text: str) -> Message:
    """The message of a user."""
    return {"role": "user", "content": text}


def _environment() -> "ImmutableSandboxedEnvironment":
    """Make what templates are written for: they come with models from anywhere, so it keeps them from all but text."""
    from jinja2 import nodes
    from jinja2.exceptions import TemplateError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """`{% generation %}` marks an answer for training; what is inside counts as it stands."""

        tags = {"generation"}  # noqa: RUF012 - jinja's own type

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    def refuse(message: str) -> NoReturn:
        raise TemplateError(message)

    def to_json(value: Any, **options: Any) -> str:
        return json.dumps(value, **{"ensure_ascii": False} | options)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)  # noqa: DTZ005 - as served
    return environment


def _config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        config = json.loads(_text(path))
    except ValueError as error:
        raise BadInput(FIELD, f"{path} is no JSON ({_one_line(error)})", REMEDY) from error
    if not isinstance(config, dict):
        raise BadInput(FIELD, f"{path} holds no settings of a tokenizer", REMEDY)
    return config


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(FIELD, f"{path} cannot be read ({_one_line(error)})", REMEDY) from error


def _named(given: Any, tools: bool) -> str | None:
    """The template among those that a configuration has: one, or several by name."""
    if isinstance(given, list):
        by_name = {row.get("name"): row.get("template") for row in given if isinstance(row, dict)}
        given = by_name.get("tool_use" if tools and "tool_use" in by_name else "default")
    return given if isinstance(given, str) else None


def _token(given: Any) -> str | None:
    """A special token as configurations spell it: by itself, or with its properties."""
    text = given.get("content") if isinstance(given, dict) else given
    return text if isinstance(text, str) else None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
