"""`AgenticDataset`: recorded sessions of agents, sent again call by call."""

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput, setting
from loadgen.util.clock import NS_PER_S
from loadgen.util.number_format import parse_range, parse_share
from loadgen.workload.datasets.agentic import (
    mlperf_conversations,
    otel_spans,
    tracelab_rounds,
    weka_trace,
)
from loadgen.workload.datasets.agentic.recorded_session import (
    RecordedCall,
    RecordedSession,
    read_rows,
)
from loadgen.workload.datasets.session import EndlessSessions
from loadgen.workload.files import cache
from loadgen.workload.files.mapped_file import DATASET_PATH, dataset_path
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.random_text import BlockTexts, RandomText
from loadgen.workload.tokenizer.tokenizer import Tokenizer

FORMAT = setting.trace_format
TRAJECTORY_START = setting.trajectory_start
REMEDY = "give a file with sessions of agents"
# Each module says whether an object `is_row` of its format, and reads the `sessions` of a file.
FORMATS = {
    "weka": weka_trace,
    "mlperf": mlperf_conversations,
    "tracelab": tracelab_rounds,
    "otel": otel_spans,
}


class AgentFile:
    """A file of recorded sessions. One session at a time is in memory, unless its format mixes
    them.

    Args:
        path: The file.
        name: One of FORMATS, or `auto` to recognize it by its first object.

    Attributes:
        path: The file.
        format: The name of its format.

    Raises:
        BadInput: The file cannot be read, or is of none of the formats.
    """

    def __init__(self, path: Path, name: str = "auto") -> None:
        if name != "auto" and name not in FORMATS:
            raise BadInput(
                FORMAT,
                f"{name} has no sessions of agents",
                f"give {setting.dataset_name} trace, or another format",
            )
        row = next(read_rows(path, REMEDY), None)
        if row is None:
            raise BadInput(DATASET_PATH, f"{path} is empty", REMEDY)
        formats = [format_name for format_name, form in FORMATS.items() if form.is_row(row.fields)]
        if name == "auto" and not formats:
            raise row.error(f"unknown format, none of {', '.join(FORMATS)}", f"give {FORMAT}")
        if name != "auto" and formats and name not in formats:
            problem = f"{path} is of the format {formats[0]}, not {name}"
            raise BadInput(FORMAT, problem, "leave it out")
        self.path = path
        self.format = formats[0] if name == "auto" else name

    def sessions(self) -> Iterator[RecordedSession]:
        """Yield the sessions, the same in every call.

        Raises:
            BadInput: A session is invalid, or there is none.
        """
        is_empty = True
        for session in FORMATS[self.format].sessions(self.path):
            is_empty = False
            yield session
        if is_empty:
            raise BadInput(
                DATASET_PATH, f"{self.path} has no session of the format {self.format}", REMEDY
            )


@dataclass(frozen=True, slots=True)
class TrajectoryStart:
    """The share of the calls of a session that is left out, drawn uniformly for each session by
    itself.

    Attributes:
        low, high: The bounds of the share, 0 <= low <= high < 1.
        seed: The seed of the draws.
    """

    low: float
    high: float
    seed: int

    @classmethod
    def parse(cls, text: str, seed: int) -> Self:
        """Parse `--trajectory-start`: SHARE or MIN:MAX.

        Raises:
            BadInput: It is neither, or the range is empty.
        """
        bounds = parse_range(text, parse_share)
        if bounds is None or not 0 <= bounds[0] <= bounds[1] < 1:
            remedy = (
                "give a share from 0 to below 1 such as 0.25 or 25%, or MIN:MAX such as 25%:75%"
            )
            raise BadInput(TRAJECTORY_START, f"invalid share {text!r}", remedy)
        return cls(*bounds, seed)

    def left_out(self, session: int, calls: int) -> int:
        """Return how many of the calls of a session, by its number in the run, are left out:
        never all of them.
        """
        if self.high == 0:
            return 0
        share = np.random.default_rng([self.seed, *b"start", session]).uniform(self.low, self.high)
        return int(share * calls)


@dataclass(frozen=True)
class AgenticDataset(EndlessSessions):
    """The calls of recorded sessions, each after those that it waited for, with the recorded
    pauses.

    Recorded messages are sent as they are. Where a format has only lengths and blocks, texts are
    random words, exact to the token; if the file is sent more than once, with other words each
    time.

    Attributes:
        file: The sessions.
        settings: The settings of the run: pauses, seeds, tokenizer, lengths.
        start: Where each session begins.
    """

    file: AgentFile
    settings: RunSettings
    start: TrajectoryStart

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from `--dataset-path`, `--trace-format`, `--time-scale`,
        `--max-think-time` and others.

        Raises:
            BadInput: The file cannot be used.
        """
        start = TrajectoryStart.parse(settings.trajectory_start, seed_of(settings, "order"))
        return cls(
            AgentFile(dataset_path(settings, REMEDY), settings.trace_format), settings, start
        )

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer of the prompts; None if all have recorded texts, which are not counted."""
        return self._random_text.tokenizer if self._size[1] else None

    @property
    def requests(self) -> int:
        """The number of calls that are sent if each session of the file is sent once.

        Raises:
            BadInput: A session is invalid.
        """
        return self._size[0]

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": "agentic",
            "rule": "as recorded",
            "format": self.file.format,
            "file": str(self.file.path),
            "file_sha256": cache.file_sha256(self.file.path),
            "requests_of_file": self.requests,
            "trajectory_start": [self.start.low, self.start.high],
            "time_scale": self.settings.time_scale,
            "max_think_time_s": self.settings.max_think_time,
            "seed_prompts": seed_of(self.settings, "prompts"),
            **(self.tokenizer.provenance() if self.tokenizer else {}),
        }

    @cached_property
    def _size(self) -> tuple[int, bool]:
        """How many calls are sent if each session is sent once, and whether any has a length in
        place of a text.
        """
        requests, draws_texts = 0, False
        for number, session in enumerate(self.file.sessions()):
            requests += len(session.calls) - self.start.left_out(number, len(session.calls))
            draws_texts = draws_texts or not all(call.messages for call in session.calls)
        return requests, draws_texts

    @cached_property
    def _random_text(self) -> RandomText:
        return RandomText.of(self.settings)

    @cached_property
    def _texts(self) -> BlockTexts:
        return BlockTexts(self._random_text)

    def endless(self) -> Iterator[Iterator[Prompt]]:
        """Yield the prompts of each session: after the end of the file, it is repeated.

        Raises:
            BadInput: A session is invalid, or its words need a tokenizer.
        """
        begun = itertools.count()
        for copy in itertools.count():
            for number, session in enumerate(self.file.sessions()):
                left_out = self.start.left_out(next(begun), len(session.calls))
                yield self._prompts(session.without_first(left_out), number, copy)

    def _prompts(self, session: RecordedSession, number: int, copy: int) -> Iterator[Prompt]:
        scope = f"{copy}" if session.is_global else f"{copy}/{number}"
        name = f"agentic/{session.name}" + (f"/copy {copy}" if copy else "")
        scale, cap_s = self.settings.time_scale, self.settings.max_think_time
        for call_number, call in enumerate(session.calls):
            source, after = (
                f"{name}/{call_number}",
                tuple(call_number - before for before in call.after),
            )
            think_s, output_tokens = call.delay_s / scale, self._output_tokens(call)
            think_ns = round((think_s if cap_s is None else min(think_s, cap_s)) * NS_PER_S)
            if call.messages:
                yield Prompt(
                    "",
                    call.input_tokens,
                    output_tokens,
                    source,
                    call.messages,
                    after=after,
                    think_ns=think_ns,
                    fields=call.fields,
                )
                continue
            special = self._random_text.tokenizer.special_tokens
            blocks = [_row(scope, "block", block) for block in call.blocks]
            tokens = max(call.input_tokens - special, 1)
            text = self._texts.text(
                blocks, call.sizes, tokens, _row(f"{copy}/{number}", "call", call_number)
            )
            yield Prompt(
                text, tokens + special, output_tokens, source, after=after, think_ns=think_ns
            )

    def _output_tokens(self, call: RecordedCall) -> int:
        if call.output_tokens is not None:
            return call.output_tokens
        if (usual := self.settings.custom_output_len) < 1:
            problem = f"is {usual}, and {call.location} of {self.file.path} has no output length"
            raise BadInput(setting.custom_output_len, problem, "give a length")
        return usual


def _row(scope: str, kind: str, number: int) -> int:
    """Return a row of random words, for a block or for what a call alone has: 64 bits that only
    these names have.
    """
    return int.from_bytes(
        hashlib.blake2b(f"{scope}/{kind}/{number}".encode(), digest_size=8).digest()
    )
