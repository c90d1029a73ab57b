"""Prompts of a run whose classes have data sets of their own: one source for each, dealt out by the class of a session.

Classes without data of their own share the data set of the run, so none of its prompts is sent twice.
"""

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from loadgen.config.request_class import CLASS, RequestClass
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.runner.prompt_source import ClassCounts, PromptSource
from loadgen.workload.chat_template.template_tokens import TemplateTokens
from loadgen.workload.draws import ClassDraws
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target


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
