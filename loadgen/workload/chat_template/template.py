"""`ChatTemplate`: renders the chat template of a tokenizer, and counts the tokens of chats as a
server does.
"""

import datetime
import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from loadgen.errors import BadInput
from loadgen.workload.files import cache
from loadgen.workload.prompt import Message, user_message
from loadgen.workload.tokenizer.tokenizer import TEMPLATES, TOKENIZER, Tokenizer

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import ImmutableSandboxedEnvironment

FILE, CONFIG = TEMPLATES
VERSION = 1  # of the cached counts, and of the cached ends of tokens
MARK = "\x1d"  # around the number of a message, in a template that is rendered without its texts
CLOCK = "strftime_now"  # the function by which a template asks for the date
REMEDY = "give the folder of the served model's tokenizer, with its chat template"
SPECIAL = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)


class ChatTemplate:
    """The chat template of a tokenizer, rendered as Hugging Face's `transformers` and the servers
    that use it do.

    Args:
        text: The template, in Jinja.
        tokenizer: Counts the tokens of the rendered text.
        name: Its origin, for people.
        special: Special tokens that it may use, such as `bos_token`.

    Attributes:
        name: As given.
        sha256: Hash of its text, in hex.
        bos: The beginning-of-sequence token; empty if it is not known.
    """

    def __init__(
        self, text: str, tokenizer: Tokenizer, name: str, special: dict[str, str] | None = None
    ) -> None:
        self.name, self.sha256 = name, hashlib.sha256(text.encode()).hexdigest()
        self._text, self._tokenizer, self._special = text, tokenizer, special or {}
        self.bos = self._special.get("bos_token", "")

    @cached_property
    def _template(self) -> "Template":
        from jinja2 import TemplateError

        try:
            return _environment().from_string(self._text)
        except TemplateError as error:
            raise BadInput(
                TOKENIZER, f"{self.name} is not a chat template ({_one_line(error)})", REMEDY
            ) from error

    @classmethod
    def of(cls, tokenizer: Tokenizer, *, tools: bool = False) -> "ChatTemplate | None":
        """Find the template in the tokenizer's folder, or in the model's GGUF file; None if there
        is none.

        Args:
            tokenizer: The tokenizer.
            tools: Whether tools are given, for which some models have a separate template.

        Raises:
            BadInput: The template cannot be read.
        """
        folder, gguf = tokenizer.folder, tokenizer.gguf
        if gguf is not None and gguf.template is not None:
            return cls(gguf.template, tokenizer, tokenizer.name, gguf.special)
        if folder is None:
            return None
        config = _config(folder / CONFIG)
        templates = config.get("chat_template")
        if isinstance(templates, list):
            by_name = {
                row.get("name"): row.get("template") for row in templates if isinstance(row, dict)
            }
            templates = by_name.get("tool_use" if tools and "tool_use" in by_name else "default")
        source = templates if isinstance(templates, str) else None
        path = folder / CONFIG
        if (folder / FILE).is_file():
            path = folder / FILE
            source = _text(path)
        if source is None:
            return None
        special = {}
        for name in SPECIAL:
            token = config.get(name)
            text = token.get("content") if isinstance(token, dict) else token
            if isinstance(text, str):
                special[name] = text
        return cls(source, tokenizer, str(path), special)

    def render(self, messages: Sequence[Message], **options: Any) -> str:
        """Render messages to the text that a server makes of them, up to the start of the answer if
        there is one.

        Args:
            messages: Each with `role` and `content`.
            options: Further variables of the template: `tools`, `add_generation_prompt` (true), and
                the `chat_template_kwargs` of the request.

        Raises:
            BadInput: The text is not a template, or it refuses them.
        """
        from jinja2 import TemplateError

        template = self._template
        variables = (
            {"tools": None, "documents": None, "add_generation_prompt": True}
            | self._special
            | options
        )
        try:
            return template.render(messages=messages, **variables)
        except (
            TemplateError,
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:
            problem = f"the chat template {self.name} cannot be rendered ({_one_line(error)})"
            raise BadInput(TOKENIZER, problem, REMEDY) from error

    def count(self, chats: Iterable[Sequence[Message]], **options: Any) -> list[int]:
        """Count the tokens of each chat like a server; `options` are those of `render`.

        Raises:
            BadInput: The template refuses a chat.
        """
        return self._tokenizer.count([self.render(chat, **options) for chat in chats])

    def added_tokens(self, probes: Sequence[str], **options: Any) -> tuple[int, ...]:
        """Count the tokens that the template adds: a text as the only message of a chat, less the
        text alone.

        Args:
            probes: Texts to try, at least one.
            options: The options of `render`.

        Returns:
            The distinct differences between chats and their texts with special tokens, ascending.
            There is a single one unless tokens of template and text join. Below 0 if a template
            leaves special tokens out.

        Raises:
            BadInput: The template refuses a text.
        """

        def count() -> list[int]:
            templated = self.count(([user_message(text)] for text in probes), **options)
            raw = self._tokenizer.count(probes, special=True)
            return sorted({chat - alone for chat, alone in zip(templated, raw, strict=True)})

        if CLOCK in self._text:  # the count may be another one tomorrow
            return tuple(count())
        key = [VERSION, self.sha256, self._special, options, list(probes)]
        return tuple(cache.get_or_make_fact("template", self._tokenizer.sha256, key, count))

    def frame(self, roles: Sequence[str], **options: Any) -> list[str] | None:
        """Return the texts before, between and after messages of these roles; None if the template
        changes messages.

        Args:
            roles: The role of each message.
            options: The options of `render`.

        Raises:
            BadInput: The template refuses such messages.
        """
        marks = [f"{MARK}{number}{MARK}" for number in range(len(roles))]
        messages = [
            {"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)
        ]
        rest, pieces = self.render(messages, **options), []
        for mark in marks:
            piece, separator, rest = rest.partition(mark)
            if not separator:
                return None
            pieces.append(piece)
        return [*pieces, rest]

    def piece_ends(self, piece: str) -> list[int]:
        """Return the character at which each token of a part of a frame ends, from the cache if
        it is there.
        """
        if not piece:
            return []
        tokenizer, key = self._tokenizer, [VERSION, piece]
        ends: list[int] = cache.get_or_make_fact(
            "ends", tokenizer.sha256, key, lambda: tokenizer.ends([piece])[0]
        )
        return ends


def _environment() -> "ImmutableSandboxedEnvironment":
    """Create the Jinja environment of chat templates, sandboxed because templates come from
    untrusted models.
    """
    from jinja2 import nodes
    from jinja2.exceptions import TemplateError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """Renders `{% generation %}`, which marks an answer for training, as its content."""

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
    environment.globals[CLOCK] = lambda form: datetime.datetime.now().strftime(form)  # noqa: DTZ005 - as served
    return environment


def _config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        config = json.loads(_text(path))
    except ValueError as error:
        raise BadInput(TOKENIZER, f"{path} is not JSON ({_one_line(error)})", REMEDY) from error
    if not isinstance(config, dict):
        raise BadInput(TOKENIZER, f"{path} is not a tokenizer configuration", REMEDY)
    return config


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(TOKENIZER, f"{path} cannot be read ({_one_line(error)})", REMEDY) from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
