"""`PromptSource`: the prompts of a run as they are sent, with what the server is expected to count
of each.

A run has one data set. If its classes have data sets of their own, each data set has a source, and
the sessions of all are sent in the order of the classes that are drawn. Classes without data of
their own share the data set of the run, so none of its prompts is sent twice.
"""

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, structs

from loadgen.config.request_class import CLASS, RequestClass
from loadgen.config.settings import RunSettings, is_closed_loop, seed_of
from loadgen.errors import BadInput, within
from loadgen.workload.chat_template.prediction import TokenPrediction
from loadgen.workload.chat_template.template_tokens import INPUT_LEN_COUNTS, TemplateTokens
from loadgen.workload.datasets import prompt_cache
from loadgen.workload.draws import ClassDraws, classed
from loadgen.workload.prefix_cache.salt import Salt
from loadgen.workload.prefix_cache.token_ends import TokenEnds
from loadgen.workload.prompt import Continued, Dataset, Prefixed, Prompt, Sessions, Timed
from loadgen.workload.prompt_form import PromptForm
from loadgen.workload.target import Target


class PromptSource(Struct, frozen=True):
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
    ends: TokenEnds | None = None

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        settings: RunSettings,
        target: Target,
        count: int,
        *,
        salt: str | None = None,
    ) -> "PromptSource":
        """Take the prompts of a caller's data set, whose prompts state the server's counts as far
        as they are known.

        Args:
            dataset: The data set.
            settings: The settings of the run.
            target: The server.
            count: Number of prompts, or sessions, as far as that is known beforehand.
            salt: The salt of the prompts; None: they have none.

        Raises:
            BadInput: The settings want prompts made to the server's measure, or a form that they
                cannot have.
        """
        if settings.input_len_counts == "server":
            raise BadInput(
                INPUT_LEN_COUNTS, "the length of your own data set is fixed", "leave it out"
            )
        for request_class in settings.request_classes:
            if request_class.data:
                flags = ", ".join(request_class.data)
                problem = f"{flags} would change the prompts of your own data set"
                raise BadInput((CLASS, request_class.name), problem, "leave it out")
        form = PromptForm.of(dataset, settings, target)
        source = cls._of(dataset, settings, count)._salted(salt, dataset, settings)
        source = source._changed(form.apply, form.provenance)._asking(target)
        return structs.replace(source, ends=TokenEnds.of(dataset, settings, chat=target.chat))

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
            count: Number of prompts, or sessions, as far as that is known beforehand.
            template_tokens: Tokens that the chat template adds to a prompt; None: unknown before
                the run.
            asks: Whether the server may be asked for them.
            salt: The salt of the prompts; None: they have none.

        Raises:
            BadInput: The settings cannot be met.
        """
        dataset = prompt_cache.cached_dataset(settings)
        form = PromptForm.of(dataset, settings, target)
        prediction = TokenPrediction.of(dataset, settings, target, template_tokens, asks=asks)
        sized = (prediction if form.template is None else form).sized(dataset, settings)
        source = cls._of(sized, settings, count)._salted(salt, dataset, settings)
        source = source._changed(form.apply, form.provenance)
        source = source._changed(prediction.predict, prediction.provenance)._asking(target)
        ends = TokenEnds.of(dataset, settings, prediction, chat=target.chat)
        return structs.replace(source, ends=ends)

    def _salted(self, salt: str | None, dataset: Dataset, settings: RunSettings) -> "PromptSource":
        if salt is None:
            return self
        return self._changed(Salt.of(salt, dataset, settings).apply, dict)

    def _changed(
        self,
        change: Callable[[Iterator[Prompt]], Iterator[Prompt]],
        facts: Callable[[], dict[str, Any]],
    ) -> "PromptSource":
        """Return a source of these prompts, changed, with further facts about their origin."""
        return structs.replace(
            self,
            prompts=change(self.prompts),
            origin=lambda: self.origin() | facts(),
            beyond=lambda made: change(self.beyond(made)),
            prefixes=change(self.prefixes),
        )

    def _asking(self, target: Target) -> "PromptSource":
        """Return the same prompts; they ask for no output tokens if the server generates none."""
        return self if target.generates else self._changed(partial(map, _without_answer), dict)

    @classmethod
    def _of(cls, dataset: Dataset, settings: RunSettings, count: int) -> "PromptSource":
        beyond = dataset.beyond if isinstance(dataset, Continued) else _nothing
        by_time = (
            settings.num_prompts is None
            and settings.duration is not None
            and not is_closed_loop(settings)
        )
        of_sessions = by_time and isinstance(dataset, Sessions)
        if isinstance(dataset, Timed) and not of_sessions:
            count = settings.num_prompts or dataset.requests
        elif isinstance(dataset, Sessions):
            count = settings.num_prompts or count
        prompts = (
            dataset.sessions(count)
            if of_sessions and isinstance(dataset, Sessions)
            else dataset.prompts(min(count, settings.distinct_prompts or count))
        )
        if settings.distinct_prompts is not None:  # the run itself repeats those of its end, too
            prompts, beyond = itertools.islice(itertools.cycle(prompts), count), _nothing
        prefixes = dataset.prefix_prompts() if isinstance(dataset, Prefixed) else iter(())
        source = cls(prompts, dataset.provenance, count, beyond, of_sessions, prefixes)
        if not settings.request_classes:
            return source
        # The same prompts, each with a class that is drawn.
        numbers = ClassDraws.from_settings(settings).numbers()
        counts = ClassCounts(settings)
        return structs.replace(
            source,
            prompts=counts.counted(classed(prompts, numbers)),
            origin=lambda: source.origin() | counts.facts(),
            beyond=lambda made: classed(source.beyond(made), numbers),
            # classes may have adapters, whose prompts a prefix cache keeps apart
            prefixes=iter(()),
        )


class ClassCounts:
    """Counts the prompts of a run by their class.

    Args:
        settings: The settings of the run.
    """

    def __init__(self, settings: RunSettings) -> None:
        self._names = [request_class.name for request_class in settings.request_classes]
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
    return structs.replace(prompt, output_tokens=0)


def _nothing(count: int) -> Iterator[Prompt]:
    """Return no prompts: what a data set without more has beyond its prompts."""
    return iter(())


def prompts_of_run(
    settings: RunSettings,
    target: Target,
    count: int,
    template_tokens: TemplateTokens | None = None,
    *,
    salt: str | None = None,
) -> PromptSource:
    """Open the data sets that the settings name, for the run or its classes.

    Args:
        settings, target, template_tokens, salt: As for `PromptSource.named`.
        count: Number of prompts, or sessions, as far as that is known beforehand.

    Returns:
        The prompts of all data sets, in the order in which they are sent.

    Raises:
        BadInput: The settings cannot be met.
    """
    class_data = data_of(settings)
    if not class_data:
        return PromptSource.named(settings, target, count, template_tokens, salt=salt)
    source_numbers = _data_numbers(settings)
    draws = ClassDraws.from_settings(settings).numbers()
    drawn = list(itertools.islice(draws, count))
    session_counts = Counter(source_numbers[number] for number in drawn)
    sources = list[PromptSource]()
    for number, (request_class, class_settings) in enumerate(class_data):
        sessions = session_counts[number]
        if not sessions:
            raise BadInput(
                (CLASS, request_class.name),
                f"gets none of {count} requests",
                "send more requests, or give it a larger share",
            )
        if not class_settings.timed_by_data:
            class_settings = class_settings.replace(num_prompts=sessions)
        class_target = target.classes[source_numbers.index(number)]
        with within(CLASS, request_class.name):
            source = PromptSource.named(
                class_settings, class_target, sessions, template_tokens, salt=salt
            )
        sources.append(source)
    return _dealt(settings, source_numbers, sources, drawn, draws)


def data_of(settings: RunSettings) -> list[tuple[RequestClass, RunSettings]]:
    """Return the first class with each data set, and the settings of that data set.

    Data sets after the first have seeds of their own, so that none begins with the words of
    another.

    Args:
        settings: The settings of the run.

    Returns:
        A pair for each data set; empty if classes have no data of their own.
    """
    if not any(request_class.data for request_class in settings.request_classes):
        return []
    numbers = _data_numbers(settings)
    pairs = list[tuple[RequestClass, RunSettings]]()
    for number in range(max(numbers) + 1):
        request_class = settings.request_classes[numbers.index(number)]
        class_settings = settings.of_class(request_class)
        if number:
            class_settings = class_settings.replace(
                seed_prompts=_derived_seed(seed_of(class_settings, "prompts"), number),
                seed_order=_derived_seed(seed_of(class_settings, "order"), number),
            )
        pairs.append((request_class, class_settings))
    return pairs


def _data_numbers(settings: RunSettings) -> list[int]:
    """Return the number of the data set of each class, from 0 in the order of the classes."""
    class_data = [request_class.data for request_class in settings.request_classes]
    distinct = [data for number, data in enumerate(class_data) if data not in class_data[:number]]
    return [distinct.index(data) for data in class_data]


def _derived_seed(seed: int, number: int) -> int:
    return int.from_bytes(hashlib.blake2b(b"class/%d/%d" % (seed, number), digest_size=7).digest())


def _dealt(
    settings: RunSettings,
    source_numbers: Sequence[int],
    sources: Sequence[PromptSource],
    drawn: Sequence[int],
    draws: Iterator[int],
) -> PromptSource:
    """Combine several sources, whose sessions follow each other in the order of the classes that
    are drawn.

    Args:
        settings: The settings of the run.
        source_numbers: The source of each class.
        sources: The sources.
        drawn: The class of each session of the run.
        draws: The classes of the sessions after those.
    """
    counts = ClassCounts(settings)
    taken = [0] * len(sources)

    def deal(classes: Iterable[int], streams: Iterable[Iterator[Prompt]]) -> Iterator[Prompt]:
        """Yield sessions of these classes, until a source has none left."""
        sessions = [_sessions(prompts) for prompts in streams]
        for number in classes:
            session = next(sessions[source_numbers[number]], None)
            if session is None:
                return
            taken[source_numbers[number]] += len(session)
            for prompt in session:
                yield structs.replace(prompt, class_number=number)

    def beyond(made: int) -> Iterator[Prompt]:
        return deal(
            draws, [source.beyond(count) for source, count in zip(sources, taken, strict=True)]
        )

    def origin() -> dict[str, Any]:
        names: list[list[str]] = [[] for _ in sources]
        for request_class, number in zip(settings.request_classes, source_numbers, strict=True):
            names[number].append(request_class.name)
        origins = [
            {"classes": classes} | source.origin()
            for classes, source in zip(names, sources, strict=True)
        ]
        return {"name": "classes", "sources": origins} | counts.facts()

    first, *others = [source.ends for source in sources]
    is_same = first is not None and all(
        ends is not None and ends.key == first.key for ends in others
    )
    prompts = counts.counted(deal(drawn, [source.prompts for source in sources]))
    return PromptSource(
        prompts, origin, len(drawn), beyond, of_sessions=True, ends=first if is_same else None
    )


def _sessions(prompts: Iterator[Prompt]) -> Iterator[list[Prompt]]:
    """Group prompts by their sessions."""
    session: list[Prompt] = []
    for prompt in prompts:
        if session and not prompt.follows:
            yield session
            session = []
        session.append(prompt)
    if session:
        yield session
