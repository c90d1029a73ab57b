"""Prompts of a run whose classes have data sets of their own: one source for each, dealt out by the class of a session.

Classes without data of their own share the data set of the run, so none of its prompts is sent twice.
"""

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from loadgen.config.class_text import CLASS
from loadgen.config.request_class import RequestClass
from loadgen.config.settings import RunSettings, is_closed_loop, seed_of
from loadgen.errors import BadInput
from loadgen.workload.chat_template.template_tokens import INPUT_LEN_COUNTS, TemplateTokens
from loadgen.workload.class_draws import ClassDraws, classed
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


def prompts_of_run(
    settings: RunSettings,
    target: Target,
    count: int,  # how many prompts, or sessions, are due, as far as that is known beforehand
    template_tokens: TemplateTokens | None = None,
    *,
    salt: str | None = None,
) -> PromptSource:
    """Open the data sets that the settings name, for the run or its classes.

    Args:
        settings, target, template_tokens, salt: As for `PromptSource.named`.

    Raises:
        BadInput: The settings cannot be met.
    """
    if not (own_data := data_of(settings)):
        return PromptSource.named(settings, target, count, template_tokens, salt=salt)
    numbers = _data_numbers(settings)
    draws = ClassDraws.from_settings(settings).numbers()
    drawn = list(itertools.islice(draws, count))
    counts, sources = Counter(numbers[number] for number in drawn), list[PromptSource]()
    for number, (one, own) in enumerate(own_data):
        first, needed = numbers.index(number), counts[number]
        if not needed:
            problem = f"{one.name}: gets none of {count} requests"
            raise BadInput(CLASS, problem, "send more requests, or give it a larger share")
        if not own.timed_by_data:
            own = own.replace(num_prompts=needed)
        with one.named_in_errors():
            source = PromptSource.named(own, target.classes[first], needed, template_tokens, salt=salt)
        sources.append(source)
    return _dealt(settings, numbers, sources, drawn, draws)


def data_of(settings: RunSettings) -> list[tuple[RequestClass, RunSettings]]:
    """Return the first class with each data set, and the settings of that data set; empty where classes have none.

    Data sets after the first have seeds of their own, so that none begins with the words of another.
    """
    if not any(one.data for one in settings.request_classes):
        return []
    numbers, found = _data_numbers(settings), list[tuple[RequestClass, RunSettings]]()
    for number in range(max(numbers) + 1):
        one = settings.request_classes[numbers.index(number)]
        own = settings.of_class(one)
        if number:
            prompts, order = (_derived(seed_of(own, purpose), number) for purpose in ("prompts", "order"))
            own = own.replace(seed_prompts=prompts, seed_order=order)
        found.append((one, own))
    return found


def _data_numbers(settings: RunSettings) -> list[int]:
    """Return the number of the data set of each class, from 0 in the order of the classes."""
    each = [one.data for one in settings.request_classes]
    distinct = [data for number, data in enumerate(each) if data not in each[:number]]
    return [distinct.index(data) for data in each]


def _derived(seed: int, number: int) -> int:
    return int.from_bytes(hashlib.blake2b(b"class/%d/%d" % (seed, number), digest_size=7).digest())


def _dealt(
    settings: RunSettings,
    numbers: Sequence[int],  # the source of each class
    sources: Sequence[PromptSource],
    drawn: Sequence[int],  # the class of each session of the run
    draws: Iterator[int],  # the classes of those beyond
) -> PromptSource:
    """Deal sessions of several sources out, in the order of the classes that are drawn."""
    counts, taken = ClassCounts(settings), [0] * len(sources)

    def deal(classes: Iterable[int], streams: Iterable[Iterator[Prompt]]) -> Iterator[Prompt]:
        """Yield sessions of these classes, until a source has none left."""
        sessions = [_sessions(prompts) for prompts in streams]
        for number in classes:
            session = next(sessions[numbers[number]], None)
            if session is None:
                return
            taken[numbers[number]] += len(session)
            for prompt in session:
                yield replace(prompt, class_number=number)

    def beyond(made: int) -> Iterator[Prompt]:
        return deal(draws, [source.beyond(count) for source, count in zip(sources, taken, strict=True)])

    def origin() -> dict[str, Any]:
        names: list[list[str]] = [[] for _ in sources]
        for one, number in zip(settings.request_classes, numbers, strict=True):
            names[number].append(one.name)
        listed = [{"classes": each} | source.origin() for each, source in zip(names, sources, strict=True)]
        return {"name": "classes", "sources": listed} | counts.facts()

    first, *others = [source.ends for source in sources]
    is_same = first is not None and all(one is not None and one.key == first.key for one in others)
    prompts = counts.counted(deal(drawn, [source.prompts for source in sources]))
    return PromptSource(prompts, origin, len(drawn), beyond, of_sessions=True, ends=first if is_same else None)


def _sessions(prompts: Iterator[Prompt]) -> Iterator[list[Prompt]]:
    session: list[Prompt] = []
    for prompt in prompts:
        if session and not prompt.follows:
            yield session
            session = []
        session.append(prompt)
    if session:
        yield session
