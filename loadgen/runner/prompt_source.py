"""`PromptSource`: the prompts of a data set as they are sent, with what the server is expected to count of each."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from loadgen.config.request_class import CLASS
from loadgen.config.settings import RunSettings, is_closed_loop
from loadgen.errors import BadInput
from loadgen.workload.chat_template.template_tokens import INPUT_LEN_COUNTS, TemplateTokens
from loadgen.workload.draws import ClassDraws, classed
from loadgen.workload.prompt import Continued, Dataset, Prefixed, Prompt, Sessions, Timed
from loadgen.workload.target import Target

if TYPE_CHECKING:
    from loadgen.workload.prefix_cache.token_ends import TokenEnds


@dataclass(frozen=True)
class PromptSource:
    """The prompts of a data set, with what the server is expected to count of each.

    Attributes:
        prompts: Each of them once.
        origin: Called after the last prompt: where they come from, as JSON.
        count: How many there are to be, of sessions or of prompts.
        beyond: Called with a number of prompts: what the data set has after so many.
        of_sessions: Whether `count` is a number of sessions, whatever the number of their turns.
        prefixes: A prompt of each distinct prefix alone, where the prompts have prefixes in common.
        ends: Tokenizes the prompts as the server does; None: there is no tokenizer.
    """

    prompts: Iterator[Prompt]
    origin: Callable[[], dict[str, Any]]
    count: int
    beyond: Callable[[int], Iterator[Prompt]]
    of_sessions: bool = False
    prefixes: Iterator[Prompt] = iter(())
    ends: "TokenEnds | None" = None

    @classmethod
    def of(
        cls, dataset: Dataset, settings: RunSettings, target: Target, count: int, *, salt: str | None = None
    ) -> "PromptSource":
        """Take the prompts of a caller's data set, which says itself what it knows of the server's counts.

        Args:
            dataset: The data set.
            settings: The settings of the run.
            target: The server.
            count: How many are due, as far as that is known beforehand.
            salt: The salt of the prompts; None: they have none.

        Raises:
            BadInput: The settings want prompts made to the server's measure, or a form that they cannot have.
        """
        if settings.input_len_counts == "server":
            raise BadInput(INPUT_LEN_COUNTS, "the length of your own data set is fixed", "leave it out")
        for one in settings.request_classes:
            if one.data:
                problem = f"{one.name}: {', '.join(one.data)} would change the prompts of your own data set"
                raise BadInput(CLASS, problem, "leave it out")
        from loadgen.workload.prefix_cache.token_ends import TokenEnds
        from loadgen.workload.prompt_form import PromptForm

        form = PromptForm.of(dataset, settings, target)
        own = cls._of(dataset, settings, count)._salted(salt, dataset, settings)
        own = own._changed(form.apply, form.provenance)._asking(target)
        return replace(own, ends=TokenEnds.of(dataset, settings, chat=target.chat))

    @classmethod
    def named(
        cls,
        settings: RunSettings,
        target: Target,
        count: int,
        template_tokens: TemplateTokens | None = None,
        *,
        asks: bool = True,
        salt: str | None = None,
    ) -> "PromptSource":
        """Open the data set that the settings name.

        Args:
            settings: The settings of the run.
            target: The server.
            count: How many are due, as far as that is known beforehand.
            template_tokens: Tokens that the chat template adds to a prompt; None: unknown before the run.
            asks: Whether the server may be asked for them.
            salt: The salt of the prompts; None: they have none.

        Raises:
            BadInput: The settings cannot be met.
        """
        from loadgen.workload.chat_template.prediction import TokenPrediction
        from loadgen.workload.datasets import prompt_cache
        from loadgen.workload.prefix_cache.token_ends import TokenEnds
        from loadgen.workload.prompt_form import PromptForm

        found = prompt_cache.cached_dataset(settings)
        form = PromptForm.of(found, settings, target)
        prediction = TokenPrediction.of(found, settings, target, template_tokens, asks=asks)
        sized = (prediction if form.template is None else form).sized(found, settings)
        own = cls._of(sized, settings, count)._salted(salt, found, settings)._changed(form.apply, form.provenance)
        own = own._changed(prediction.predict, prediction.provenance)._asking(target)
        return replace(own, ends=TokenEnds.of(found, settings, prediction, chat=target.chat))

    def _salted(self, salt: str | None, dataset: Dataset, settings: RunSettings) -> "PromptSource":
        if salt is None:
            return self
        from loadgen.workload.prefix_cache.salt import Salt

        return self._changed(Salt.of(salt, dataset, settings).apply, dict)

    def _changed(
        self, change: Callable[[Iterator[Prompt]], Iterator[Prompt]], facts: Callable[[], dict[str, Any]]
    ) -> "PromptSource":
        """Return a source of these prompts, changed, with further facts about their origin."""
        return replace(
            self,
            prompts=change(self.prompts),
            origin=lambda: self.origin() | facts(),
            beyond=lambda made: change(self.beyond(made)),
            prefixes=change(self.prefixes),
        )

    def _asking(self, target: Target) -> "PromptSource":
        """Return the same prompts; they ask for no output tokens where the server generates none."""
        return self if target.generates else self._changed(partial(map, _without_answer), dict)

    @classmethod
    def _of(cls, dataset: Dataset, settings: RunSettings, count: int) -> "PromptSource":
        beyond = dataset.beyond if isinstance(dataset, Continued) else _nothing
        by_time = settings.num_prompts is None and settings.duration is not None and not is_closed_loop(settings)
        of_sessions = by_time and isinstance(dataset, Sessions)
        if isinstance(dataset, Timed) and not of_sessions:
            count = settings.num_prompts or dataset.requests
        elif isinstance(dataset, Sessions):
            count = settings.num_prompts or count
        prompts = dataset.sessions(count) if of_sessions and isinstance(dataset, Sessions) else dataset.prompts(count)
        prefixes = dataset.prefix_prompts() if isinstance(dataset, Prefixed) else iter(())
        own = cls(prompts, dataset.provenance, count, beyond, of_sessions, prefixes)
        return own._classed(settings) if settings.request_classes else own

    def _classed(self, settings: RunSettings) -> "PromptSource":
        numbers, counts = ClassDraws.from_settings(settings).numbers(), ClassCounts(settings)
        return replace(
            self,
            prompts=counts.counted(classed(self.prompts, numbers)),
            origin=lambda: self.origin() | counts.facts(),
            beyond=lambda made: classed(self.beyond(made), numbers),
            prefixes=iter(()),  # classes may have adapters, whose prompts a prefix cache keeps apart
        )


class ClassCounts:
    """Counts the prompts of a run by their class.

    Args:
        settings: The settings of the run.
    """

    def __init__(self, settings: RunSettings) -> None:
        self._names = [one.name for one in settings.request_classes]
        self._counts = Counter[int]()

    def counted(self, prompts: Iterable[Prompt]) -> Iterator[Prompt]:
        """Yield the prompts, and count them."""
        for prompt in prompts:
            self._counts[prompt.class_number] += 1
            yield prompt

    def facts(self) -> dict[str, Any]:
        """Return the number of prompts of each class so far, as JSON."""
        return {"classes": {name: self._counts[number] for number, name in enumerate(self._names)}}


def _without_answer(prompt: Prompt) -> Prompt:
    return replace(prompt, output_tokens=0)


def _nothing(count: int) -> Iterator[Prompt]:
    """Return no prompts: what a data set without more has beyond its prompts."""
    return iter(())
