"""`StandIns`: bodies of requests without a word of the originals, as long to the token, that begin
alike where the originals do.

Word i of a text is a function of a secret and of all tokens of the chat up to i. The secret is
drawn anew for each file and kept nowhere, so nobody can look for a text by trying it. What stays:
the roles and the lengths of messages, numbers that steer an answer, and the shape of tools.
"""

import hashlib
from collections import Counter
from typing import Any

import orjson

from loadgen.errors import BadInput
from loadgen.workload.datasets.gateway_log import LeftOut
from loadgen.workload.endpoints.api import LENGTHS
from loadgen.workload.tokenizer.exact_text import words_of
from loadgen.workload.tokenizer.tokenizer import Tokenizer

PRIVATE = "--private"
# Fields of a body whose numbers and switches stay.
STEERING = (
    *("temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty"),
    *("repetition_penalty", "seed", "min_tokens", "ignore_eos", "stream", "logprobs"),
    *("top_logprobs", "parallel_tool_calls", "skip_special_tokens", "n", "best_of", *LENGTHS),
)
TOOLS = ("tools", "tool_choice", "response_format")
# Words of the protocol, which stay where they are values, and names of its fields.
VALUES = (
    *("function", "json_schema", "json_object", "text", "auto", "none", "required", "any", "tool"),
    *("object", "string", "number", "integer", "boolean", "array", "null", "tool_use"),
    *("system", "user", "assistant", "developer", "tool_result"),
)
NAMES = (
    *("type", "function", "name", "description", "parameters", "properties", "required", "items"),
    *("enum", "anyOf", "oneOf", "allOf", "additionalProperties", "strict", "json_schema", "schema"),
    *("default", "minimum", "maximum", "minItems", "maxItems", "input_schema", "$defs", "id"),
    *("definitions", "arguments", "tool_calls", "input", "text", "content"),
)
NAMED = ("name", "required", "enum", "id")  # values that are names of things
CHILDREN_NAMED = ("properties", "$defs", "definitions")  # objects whose fields are names of things


class StandIns:
    """Makes bodies that stand in for recorded ones.

    Attributes:
        dropped: How many bodies had each field that stands in nowhere.

    Args:
        tokenizer: That of the model, whose words the texts have.
        secret: Random bytes, at most 64.

    Raises:
        BadInput: Words of the tokenizer may join into one token.
    """

    def __init__(self, tokenizer: Tokenizer, secret: bytes) -> None:
        self._tokenizer = tokenizer
        self._words = words_of(tokenizer)
        if not self._words.additive:
            problem = f"words of {tokenizer.name} join into tokens, so no text has an exact length"
            raise BadInput(PRIVATE, problem, "give --tokenizer another one")
        self._secret = secret
        self.dropped = Counter[str]()

    def body(self, body: dict[str, Any], output_tokens: int | None) -> dict[str, Any]:
        """Return the body that stands in for another one.

        Args:
            body: The recorded body.
            output_tokens: Tokens of its answer, which the stand-in asks for; None: unknown.

        Raises:
            LeftOut: It has parts that are no text.
        """
        made = dict[str, Any]()
        context = b""
        for name, value in body.items():
            if name in STEERING and isinstance(value, int | float | None):
                made[name] = value
            elif name in TOOLS:
                made[name] = self._value(value, name)
            elif name == "system":
                made[name], context = self._content(value, b"system")
            elif name == "prompt":
                made[name], _ = self._content(value, b"")
            elif name not in ("messages", "model", "stream_options"):
                self.dropped[name] += 1
        if "messages" in body:
            made["messages"] = self._messages(body["messages"], context)
        if output_tokens is not None:  # where the answer ends depends on words that are gone
            length = next((name for name in LENGTHS if name in body), LENGTHS[0])
            if "prompt" in body:
                length = "max_tokens"
            made |= {length: output_tokens, "ignore_eos": True}
        return made

    def _messages(self, messages: Any, context: bytes) -> list[dict[str, Any]]:
        if not isinstance(messages, list) or not all(isinstance(part, dict) for part in messages):
            raise LeftOut("messages that are not a list of objects")
        made = []
        for message in messages:
            role = message.get("role")
            if not isinstance(role, str) or role not in VALUES:
                raise LeftOut("a message with an unknown role")
            stand_in: dict[str, Any] = {"role": role}
            for name, value in message.items():
                if name in ("content", "reasoning_content"):
                    stand_in[name], context = self._content(value, context + role.encode())
                elif name == "tool_calls":
                    stand_in[name] = self._value(value, name)
                elif name in ("name", "tool_call_id"):
                    stand_in[name] = self._name(str(value))
                elif name != "role":
                    self.dropped[f"messages.{name}"] += 1
            made.append(stand_in)
        return made

    def _content(self, content: Any, context: bytes) -> tuple[Any, bytes]:
        """Make the content of a message; return it, and the context of what follows."""
        if content is None:
            return None, context
        if isinstance(content, str):
            return self._text(content, context)
        if not isinstance(content, list):
            raise LeftOut("a content that is neither a text nor a list")
        parts = []
        for part in content:
            if not isinstance(part, dict) or not isinstance(part.get("text"), str):
                raise LeftOut("a part that is no text")
            text, context = self._text(part["text"], context)
            self.dropped.update(f"content.{name}" for name in part if name not in ("type", "text"))
            parts.append({"type": "text", "text": text})
        return parts, context

    def _text(self, text: str, context: bytes) -> tuple[str, bytes]:
        """Make a text of as many tokens; return it, and the context of what follows."""
        items = self._words.items
        state = hashlib.blake2b(context, digest_size=16, key=self._secret)
        words = []
        begin = 0
        (ends,) = self._tokenizer.ends([text])
        for end in ends:
            # A token may end within a character: then it adds nothing but its length.
            state.update(b"%d:%b" % (end - begin, text[begin:end].encode("utf-8", "replace")))
            number = int.from_bytes(state.digest()[:8], "big")
            words.append(items[number % len(items)])
            begin = end
        return " ".join(words), state.digest()

    def _value(self, value: Any, field: str) -> Any:
        """Make what stands in for a JSON value of a field."""
        if isinstance(value, dict):
            as_names = field in CHILDREN_NAMED
            return {
                (name if name in NAMES and not as_names else self._name(name)): self._value(
                    part, "" if as_names else name
                )
                for name, part in value.items()
            }
        if isinstance(value, list):
            return [self._value(part, field) for part in value]
        if isinstance(value, str):
            return self._string(value, field)
        if isinstance(value, bool) or value is None:
            return value
        return self._number(value)

    def _string(self, value: str, field: str) -> str:
        if field in ("type", "role", *TOOLS) and value in VALUES:
            return value
        if field in NAMED:
            return self._name(value)
        if field == "arguments":
            try:
                arguments = orjson.loads(value)
            except ValueError:
                arguments = value
            if isinstance(arguments, dict):
                made = {self._name(name): self._value(part, "") for name, part in arguments.items()}
                return orjson.dumps(made).decode()
        text, _ = self._text(value, b"value")
        return text

    def _name(self, name: str) -> str:
        """Make a name of at least two words, so that other names have other words."""
        text, _ = self._text(name, b"name")
        words = text.split()
        more, _ = self._text(f"{name}\0{name}", b"name")
        return "_".join([*words[: max(1, len(words) // 2)], more.split()[-1]])

    def _number(self, value: float) -> float:
        digest = hashlib.blake2b(repr(value).encode(), digest_size=8, key=self._secret).digest()
        least: int = 10 ** (len(str(abs(int(value)))) - 1)
        return least + int.from_bytes(digest, "big") % (9 * least)
