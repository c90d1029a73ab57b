"""Prompts: what one request asks, and how many tokens it has and wants."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question, with its size known before it is sent.

    Attributes:
        text: The user's message (chat) or the prompt itself (completions).
        messages: What a chat is sent in place of one message of `text`, each with `role` and `content`.
        input_tokens: Tokens of `text` by the data set's tokenizer, without any chat template.
        output_tokens: Tokens wanted in the answer (sent as the maximum).
        source: Where it comes from, stable between runs: a row id or "name/seed/index".
        server_tokens: Tokens that the server is expected to count, those of its chat template included; None where that
            is not known.
    """

    text: str
    input_tokens: int
    output_tokens: int
    source: str
    messages: tuple[dict[str, Any], ...] = ()
    server_tokens: int | None = None


class Dataset(Protocol):
    """A seeded, reproducible source of prompts; the same for any number of workers."""

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield exactly `count` prompts, always the same ones in the same order."""

    def provenance(self) -> dict[str, Any]:
        """Say what was read and how, as JSON: name, rule, seeds, file and tokenizer hashes."""
