"""Tokens of answers that only their text tells: of those that the server does not count, and of a
sample of those whose events show fewer tokens than it counts.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from loadgen.core.number_sample import NumberSample
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.sender import Sender
from loadgen.errors import BadInput
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.streamed_tokens import is_in_doubt
from loadgen.workload.tokenizer.tokenizer import Tokenizer

MAX_ANSWERS = 200  # in the sample


class AnswerTokens:
    """Keeps the texts of answers, and counts their tokens after the run.

    Args:
        tokenizer: Loads the tokenizer; raises BadInput where there is none.
        recorder: Counts the records.
        workers: How many share the run, each with a sample of its own.
    """

    def __init__(
        self, tokenizer: Callable[[], Tokenizer], recorder: Recorder, workers: int = 1
    ) -> None:
        self._tokenizer = tokenizer
        self._recorder = recorder
        self._uncounted: list[Record] = []
        self._sample = NumberSample(workers, max(1, MAX_ANSWERS // workers))

    def register(self, sender: Sender) -> None:
        """Keep all texts until the server has shown that it counts, and those of the sample."""
        self._sender = sender
        sender.keeps_text = True
        sender.samples = self._sample.take
        sender.defers = self._defers

    async def finish(self) -> dict[str, Any]:
        """Count, and record the answers that the server did not count.

        Returns:
            Pairs of a request number and its tokens: of these answers, and of the sample if its
            text is tokenized.
        """
        tokenized = await self._tokens_of(self._uncounted)
        sample = self._sample.records
        sampled = await self._tokens_of(sample) if is_in_doubt(sample) else {}
        for record in sample if sampled else ():
            self._recorder.add_sample(record, sampled[record.index])
        sample.clear()
        for record in self._uncounted:
            record.tokenized = tokenized.get(record.index, -1)
            self._recorder.add(record)
        self._uncounted.clear()
        return {"tokenized": sorted(tokenized.items()), "sampled": sorted(sampled.items())}

    async def _tokens_of(self, records: list[Record]) -> dict[int, int]:
        """Return the tokens of texts by request number; {} where they cannot be counted."""
        if not records:
            return {}
        texts = [record.text for record in records]
        try:
            counts = await asyncio.to_thread(lambda: self._tokenizer().count(texts))
        except BadInput:
            return {}
        return dict(zip([record.index for record in records], counts, strict=True))

    def _defers(self, record: Record) -> bool:
        """Return whether a tokenizer has to count the tokens of an answer before it is recorded;
        keep a sample of the others.
        """
        is_ok = record.outcome is Outcome.OK
        if is_ok and not record.counts_tokens:
            self._uncounted.append(record)
            return True
        self._sender.keeps_text = self._sender.keeps_text and not record.counts_tokens
        # The name of a tool and the marks around a call are counted, and stand in no text.
        if is_ok and record.completion_tokens >= 0 and not record.other_events:
            self._sample.keep(record)
        return False
