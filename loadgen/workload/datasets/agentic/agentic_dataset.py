"""`AgenticDataset`: recorded sessions of agents, sent again call by call."""

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.util.clock import NS_PER_S
from loadgen.workload.datasets.agentic.agent_file import REMEDY, AgentFile
from loadgen.workload.datasets.agentic.recorded_session import RecordedCall, RecordedSession
from loadgen.workload.datasets.agentic.trajectory_start import TrajectoryStart
from loadgen.workload.datasets.block_texts import BlockTexts
from loadgen.workload.datasets.endless_sessions import EndlessSessions
from loadgen.workload.files import file_hash
from loadgen.workload.files.mapped_file import dataset_path
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.random_text import RandomText
from loadgen.workload.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class AgenticDataset(EndlessSessions):
    """The calls of recorded sessions, each after those that it waited for, with the recorded pauses.

    Recorded messages are sent as they are. Where a format has only lengths and blocks, texts are random words, exact to
    the token; if the file is sent more than once, with other words each time.

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
        """Create the data set from `--dataset-path`, `--trace-format`, `--time-scale`, `--max-think-time` and others.

        Raises:
            BadInput: The file cannot be used.
        """
        start = TrajectoryStart.parse(settings.trajectory_start, seed_of(settings, "order"))
        return cls(AgentFile(dataset_path(settings, REMEDY), settings.trace_format), settings, start)

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer of the prompts; None if all have recorded texts, which are not counted."""
        return self._random_text.tokenizer if self._size[1] else None

    @property
    def requests(self) -> int:
        """The number of calls that are sent if each session of the file is sent once."""
        return self._size[0]

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return {
            "name": "agentic",
            "rule": "as recorded",
            "format": self.file.format,
            "file": str(self.file.path),
            "file_sha256": file_hash.sha256(self.file.path),
            "requests_of_file": self.requests,
            "trajectory_start": [self.start.low, self.start.high],
            "time_scale": self.settings.time_scale,
            "max_think_time_s": self.settings.max_think_time,
            "seed_prompts": seed_of(self.settings, "prompts"),
            **(self.tokenizer.provenance() if self.tokenizer else {}),
        }

    @cached_property
    def _size(self) -> tuple[int, bool]:
        """How many calls are sent if each session is sent once, and whether any has a length in place of a text."""
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
            source, after = f"{name}/{call_number}", tuple(call_number - before for before in call.after)
            think_s, wanted = call.delay_s / scale, self._output_tokens(call)
            think_ns = round((think_s if cap_s is None else min(think_s, cap_s)) * NS_PER_S)
            if call.messages:
                yield Prompt(
                    "", call.input_tokens, wanted, source, call.messages, after=after, think_ns=think_ns,
                    fields=call.fields,
                )  # fmt: skip
                continue
            special = self._random_text.tokenizer.special_tokens
            blocks = [_row(scope, "block", block) for block in call.blocks]
            tokens = max(call.input_tokens - special, 1)
            text = self._texts.text(blocks, call.sizes, tokens, _row(f"{copy}/{number}", "call", call_number))
            yield Prompt(text, tokens + special, wanted, source, after=after, think_ns=think_ns)

    def _output_tokens(self, call: RecordedCall) -> int:
        if call.output_tokens is not None:
            return call.output_tokens
        if (usual := self.settings.custom_output_len) < 1:
            problem = f"is {usual}, and {call.location} of {self.file.path} has no output length"
            raise BadInput("--custom-output-len", problem, "give a length")
        return usual


def _row(scope: str, kind: str, number: int) -> int:
    """Return a row of random words, for a block or for what a call alone has: 64 bits that only these names have."""
    return int.from_bytes(hashlib.blake2b(f"{scope}/{kind}/{number}".encode(), digest_size=8).digest())
