"""`TokenPrediction`: the input tokens that the server will count of each prompt, with its chat
template.
"""

import asyncio
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, Self, runtime_checkable

from msgspec import Struct, field, structs

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.workload.chat_template.template import ChatTemplate
from loadgen.workload.chat_template.template_tokens import (
    GENERATION_PROMPT,
    INPUT_LEN_COUNTS,
    KWARGS,
    PROBE,
    TemplateTokens,
    ask_server,
    template_options,
)
from loadgen.workload.image import has_images
from loadgen.workload.prompt import UNPLANNED, Dataset, Prompt, user_message
from loadgen.workload.target import Target, base_url
from loadgen.workload.tokenizer.exact_text import Count
from loadgen.workload.tokenizer.tokenizer import Tokenizer

BATCH = 64  # chats rendered and counted at a time


@runtime_checkable
class SizedToServer(Dataset, Protocol):
    """A data set that can make prompts of an exact length by the server's count.

    Attributes:
        tokenizer: Counts the tokens of its prompts.
    """

    tokenizer: Tokenizer

    def probes(self) -> list[str]:
        """Return texts like the beginnings and ends of its prompts."""

    def with_template_tokens(
        self, template_counts: Sequence[int], *, subtract: bool, measure: Count | None
    ) -> Self:
        """Return the data set with the chat template's tokens known.

        Args:
            template_counts: The distinct numbers of tokens that the template adds to `probes()`,
                ascending.
            subtract: Whether to make prompts shorter by these tokens: lengths are then those that
                the server counts.
            measure: Counts texts like the server; None if only the numbers are known.

        Raises:
            BadInput: The shortest prompts would be empty, or prompts of this length cannot be made.
        """


class TokenPrediction(Struct, frozen=True):
    """Predicts how many input tokens the server counts.

    Attributes:
        template_tokens: Tokens beyond those of a prompt, the maximum of `template_counts`; None if
            unknown.
        template_counts: The distinct numbers of template tokens that were found, ascending.
        template: The chat template, for exact counts; None if it is not available.
        options: Variables of the template beside the messages.
        unknown: The reason why nothing is known, or None.
    """

    template_tokens: TemplateTokens | None = None
    template_counts: tuple[int, ...] = ()
    template: ChatTemplate | None = None
    options: dict[str, Any] = field(default_factory=dict)
    unknown: str | None = None

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        settings: RunSettings,
        target: Target,
        template_tokens: TemplateTokens | None = None,
        *,
        asks: bool = True,
    ) -> Self:
        """Create the prediction from the template beside the tokenizer, or if the settings need it,
        from the server.

        Args:
            dataset: The data set. Without a `tokenizer`, no template is looked for; `unpredicted`
                may say why.
            settings: The settings of the run.
            target: The endpoint, with the fields of every request.
            template_tokens: The chat template's tokens, if they are known beforehand.
            asks: Whether the server may be asked.

        Raises:
            BadInput: The settings need the template's tokens and they cannot be found, or the data
                set cannot size its prompts.
        """
        if not target.chat:
            return cls.by_tokens(TemplateTokens(0, "a completions endpoint has no chat template"))
        require_sized(dataset, settings)
        if template_tokens is not None:
            return cls.by_tokens(template_tokens)
        needed = settings.input_len_counts == "server"
        tokenizer = getattr(dataset, "tokenizer", None)
        if not isinstance(tokenizer, Tokenizer):
            return cls(unknown=getattr(dataset, "unpredicted", "the data set has no tokenizer"))
        # A chat that is embedded has no answer that would start. Else nothing is said, as where the
        # facts were found.
        fields = {} if target.generates else {GENERATION_PROMPT: False}
        prediction = cls._by_template(dataset, tokenizer, fields | target.fields)
        if needed and prediction.template is None:
            if not asks:
                problem = (
                    f"the tokenizer {tokenizer.name} has no chat template, and no server is "
                    "asked here"
                )
                raise BadInput(
                    INPUT_LEN_COUNTS,
                    problem,
                    "give the folder of a tokenizer with its chat template, or leave it out",
                )
            (raw,) = tokenizer.count([PROBE], special=True)
            return cls.by_tokens(asyncio.run(ask_server(target, base_url(settings), raw)))
        return prediction

    @classmethod
    def by_tokens(cls, template_tokens: TemplateTokens) -> Self:
        """Create a prediction from known template tokens."""
        return cls(template_tokens, (template_tokens.tokens,))

    @classmethod
    def _by_template(cls, dataset: Dataset, tokenizer: Tokenizer, fields: dict[str, Any]) -> Self:
        options = template_variables(fields)
        try:
            template = ChatTemplate.of(tokenizer, tools=bool(options.get("tools")))
            if template is None:
                return cls(unknown=f"the tokenizer {tokenizer.name} has no chat template")
            counts = template.added_tokens(
                dataset.probes() if isinstance(dataset, SizedToServer) else [PROBE], **options
            )
        except BadInput as error:
            return cls(unknown=error.problem)
        return cls(
            TemplateTokens(counts[-1], f"the chat template {template.name}"),
            counts,
            template,
            options,
        )

    def sized(self, dataset: Dataset, settings: RunSettings) -> Dataset:
        """Return the data set with its template tokens known, and if the settings say so, sized to
        the server's count.

        Raises:
            BadInput: The shortest prompts are too short.
        """
        if not isinstance(dataset, SizedToServer) or not self.template_counts:
            return dataset
        subtract = settings.input_len_counts == "server"
        return dataset.with_template_tokens(
            self.template_counts, subtract=subtract, measure=self.measure if self.template else None
        )

    def measure(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of texts with the template, each as the one message of a chat."""
        assert self.template is not None
        return self.template.count(([user_message(text)] for text in texts), **self.options)

    def predict(self, prompts: Iterable[Prompt]) -> Iterator[Prompt]:
        """Yield the prompts with `server_tokens` where they can be predicted. One batch at a time
        is in memory.

        They cannot for prompts with images, of which only the server knows the tokens, and for
        prompts with tools or other template variables of their own.
        """
        waiting = iter(prompts)
        while batch := list(itertools.islice(waiting, BATCH)):
            unknown = [
                prompt
                for prompt in batch
                if prompt.server_tokens is None
                and prompt.input_tokens != UNPLANNED
                and not has_images(prompt.messages)
                and not template_variables(prompt.fields)
            ]
            counts = (
                dict(zip(map(id, unknown), self._counts(unknown), strict=True)) if unknown else {}
            )
            for prompt in batch:
                count = counts.get(id(prompt))
                yield prompt if count is None else structs.replace(prompt, server_tokens=count)

    def provenance(self) -> dict[str, Any]:
        """Return the basis of the prediction, as JSON."""
        return {
            "server_tokens": {
                "overhead": self.template_counts[0] if len(self.template_counts) == 1 else None,
                "source": self.template_tokens.source if self.template_tokens else None,
                "template_sha256": self.template.sha256 if self.template else None,
                "unknown": self.unknown,
            }
        }

    def _counts(self, prompts: list[Prompt]) -> list[int] | list[int | None]:
        if self.template is not None:
            chats = [prompt.messages or (user_message(prompt.text),) for prompt in prompts]
            return self.template.count(chats, **self.options)
        template_tokens = self.template_tokens
        return [
            None
            if template_tokens is None or prompt.messages
            else prompt.input_tokens + template_tokens.tokens
            for prompt in prompts
        ]


def require_sized(dataset: Dataset, settings: RunSettings) -> None:
    """Check that the data set can make prompts of a length by the server's count, where the
    settings want such.

    Raises:
        BadInput: It cannot.
    """
    if settings.input_len_counts != "server" or isinstance(dataset, SizedToServer):
        return
    if settings.dataset_rule is not None:
        problem = f"the rule {settings.dataset_rule} counts tokens like its tool"
        raise BadInput(
            INPUT_LEN_COUNTS, problem, f"leave out {INPUT_LEN_COUNTS} or {setting.dataset_rule}"
        )
    problem = (
        f"the data set {settings.dataset_name} cannot make prompts of a length by the "
        "server's count"
    )
    remedy = f"leave it out, or use {setting.dataset_name} random, prefix_repetition or prose"
    raise BadInput(INPUT_LEN_COUNTS, problem, remedy)


def template_variables(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of the template in the fields of a request."""
    options = template_options(fields)
    kwargs = options.pop(KWARGS, None)
    return options | (kwargs if isinstance(kwargs, dict) else {})
