"""Counting: what the server will count of each prompt, as far as that can be known before it is asked."""

import asyncio
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload.prompt import UNPLANNED, Dataset, Prompt
from loadgen.workload.target import Target, base_url
from loadgen.workload.template_overhead import FIELD, KWARGS, PROBE, Overhead, ask, template_options
from loadgen.workload.tokenizer.chat_template import Template, user
from loadgen.workload.tokenizer.exact_text import Count
from loadgen.workload.tokenizer.tokenizer import Tokenizer

BATCH = 64  # chats rendered and counted at a time


@runtime_checkable
class Tailored(Dataset, Protocol):
    """A data set that makes its prompts to a measure, so that what the server adds can be taken off.

    Attributes:
        tokenizer: What counts its prompts' tokens.
    """

    tokenizer: Tokenizer

    def probes(self) -> list[str]:
        """Texts such as its prompts begin and end with."""

    def beside(self, overheads: Sequence[int], *, taken_off: bool, measure: Count | None) -> Self:
        """The same data set, of which the server counts more tokens; with `taken_off`, made so much shorter.

        Args:
            overheads: How many more, of `probes()`: each number once, ascending.
            taken_off: Whether the lengths that are asked for are those that the server counts.
            measure: Counts texts as the server does; None where only the number is known.

        Raises:
            BadInput: That leaves nothing of the shortest prompts, or they cannot be made to this measure.
        """


@dataclass(frozen=True, slots=True)
class Counting:
    """What is known of the server's way to count.

    Attributes:
        overhead: What it counts beyond a prompt's own tokens, the most where that is not one number; None where it is
            not known.
        overheads: Each number of tokens that it was found to count beyond those of a text, ascending.
        template: What it makes of a chat, for exact counts of any; None where it is not at hand.
        options: What the template is told beside the messages.
        unknown: Why nothing is known, or None.
    """

    overhead: Overhead | None = None
    overheads: tuple[int, ...] = ()
    template: Template | None = None
    options: dict[str, Any] = field(default_factory=dict)
    unknown: str | None = None

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        settings: RunSettings,
        target: Target,
        overhead: Overhead | None = None,
        *,
        asks: bool = True,
    ) -> Self:
        """Find out, from the template beside the tokenizer, and where the settings need it from the server.

        Args:
            dataset: What is to be counted; where it has no `tokenizer`, the server's template is not looked for.
            settings: Of the run.
            target: Who is asked, and with what in every request.
            overhead: What is known beforehand.
            asks: Whether the server may be asked.

        Raises:
            BadInput: The settings need it, and it cannot be had, or the prompts are not made to a measure.
        """
        if not target.chat:
            return cls.told(Overhead(0, "a completions endpoint has no chat template"))
        _require_tailored(dataset, settings)
        if overhead is not None:
            return cls.told(overhead)
        needed = settings.input_len_counts == "server"
        tokenizer = getattr(dataset, "tokenizer", None)
        if not isinstance(tokenizer, Tokenizer):
            return cls(unknown="the data set has no tokenizer")
        found = cls._by_template(dataset, tokenizer, target.fields)
        if needed and found.template is None:
            if not asks:
                problem = f"no chat template lies beside the tokenizer {tokenizer.name}, and no server is asked here"
                raise BadInput(FIELD, problem, "name the folder of a tokenizer with its template, or leave it out")
            (raw,) = tokenizer.count([PROBE], special=True)
            return cls.told(asyncio.run(ask(target, base_url(settings), raw)))
        return found

    @classmethod
    def told(cls, overhead: Overhead) -> Self:
        """What is known where somebody has told one number."""
        return cls(overhead, (overhead.tokens,))

    @classmethod
    def _by_template(cls, dataset: Dataset, tokenizer: Tokenizer, fields: dict[str, Any]) -> Self:
        options = _options(fields)
        try:
            template = Template.of(tokenizer, tools=bool(options.get("tools")))
            if template is None:
                return cls(unknown=f"no chat template lies beside the tokenizer {tokenizer.name}")
            overheads = template.overhead(dataset.probes() if isinstance(dataset, Tailored) else [PROBE], **options)
        except BadInput as error:
            return cls(unknown=error.problem)
        return cls(Overhead(overheads[-1], f"the chat template {template.name}"), overheads, template, options)

    def fitted(self, dataset: Dataset, settings: RunSettings) -> Dataset:
        """The data set with what is known of the server's count, and where the settings say so, made to it.

        Raises:
            BadInput: They say so, and its shortest prompts are too short.
        """
        if not isinstance(dataset, Tailored) or not self.overheads:
            return dataset
        taken_off = settings.input_len_counts == "server"
        return dataset.beside(self.overheads, taken_off=taken_off, measure=self.measure if self.template else None)

    def measure(self, texts: Sequence[str]) -> list[int]:
        """The tokens of texts, each as the one message of a chat, by the template."""
        assert self.template is not None
        return self.template.count(([user(text)] for text in texts), **self.options)

    def counted(self, prompts: Iterable[Prompt]) -> Iterator[Prompt]:
        """Yield the prompts with their `server_tokens` where these can be known; a batch at a time is in memory."""
        waiting = iter(prompts)
        while batch := list(itertools.islice(waiting, BATCH)):
            open_ = [p for p in batch if p.server_tokens is None and p.input_tokens != UNPLANNED]
            counts = dict(zip(map(id, open_), self._counts(open_), strict=True)) if open_ else {}
            for prompt in batch:
                count = counts.get(id(prompt))
                yield prompt if count is None else dataclasses.replace(prompt, server_tokens=count)

    def provenance(self) -> dict[str, Any]:
        """Say, as JSON, what the prediction of the server's counts rests on."""
        return {
            "server_tokens": {
                "overhead": self.overheads[0] if len(self.overheads) == 1 else None,
                "source": self.overhead.source if self.overhead else None,
                "template_sha256": self.template.sha256 if self.template else None,
                "unknown": self.unknown,
            }
        }

    def _counts(self, prompts: list[Prompt]) -> list[int] | list[int | None]:
        if self.template is not None:
            chats = [prompt.messages or (user(prompt.text),) for prompt in prompts]
            return self.template.count(chats, **self.options)
        known = self.overhead
        return [None if known is None or prompt.messages else prompt.input_tokens + known.tokens for prompt in prompts]


def _require_tailored(dataset: Dataset, settings: RunSettings) -> None:
    if settings.input_len_counts != "server" or isinstance(dataset, Tailored):
        return
    if settings.dataset_rule is not None:
        problem = f"the rule {settings.dataset_rule} counts as its tool did"
        raise BadInput(FIELD, problem, "leave one of the two out")
    problem = f"the prompts of {settings.dataset_name} are not made to the server's measure"
    remedy = "leave it out, or take --dataset-name random or prefix_repetition, which are"
    raise BadInput(FIELD, problem, remedy)


def _options(fields: dict[str, Any]) -> dict[str, Any]:
    """What a request's fields tell the template, by the names that it gives them."""
    options = template_options(fields)
    kwargs = options.pop(KWARGS, None)
    return options | (kwargs if isinstance(kwargs, dict) else {})
