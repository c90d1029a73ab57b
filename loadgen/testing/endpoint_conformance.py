"""Endpoint conformance: pytest tests that every API must pass, in this package and in others.

Derive a test class from `EndpointOnPaper`, and define a fixture `case` of scope "module" or
"class":

    from loadgen.testing.endpoint_conformance import Case, EndpointOnPaper

    @pytest.fixture(scope="module")
    def case() -> Case:
        return Case(api=API, answer=Path("answer.txt").read_bytes(), tokens=3,
        finish_reason="length")

    class TestMine(EndpointOnPaper): ...
"""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from msgspec import structs

from loadgen.core import reference_parser
from loadgen.core.dialect import Delta
from loadgen.core.dialect_scan import DialectScanner
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.engines.sim.http1 import LAST_CHUNK, chunk
from loadgen.testing.replies import STREAM
from loadgen.workload.endpoints.api import Api
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target

TEXT = 'Why "so"?\n'
DONE = b"[DONE]"


@dataclass(frozen=True, kw_only=True)
class Case:
    """An API, and one answer of a server that has it.

    Attributes:
        api: The API.
        answer: The body of the streamed answer, as it came: `curl -sN` shows it.
        tokens: Number of its events that bear tokens.
        finish_reason: Why it ended, in the server's word.
        prompt_tokens, completion_tokens: The server's counts; -1: it gives none.
        error: An event that ends a stream as an error; empty: the API has none.
    """

    api: Api
    answer: bytes
    tokens: int
    finish_reason: str
    prompt_tokens: int = -1
    completion_tokens: int = -1
    error: bytes = b""

    @property
    def events(self) -> list[bytes]:
        """The events of the answer, each with its blank line."""
        return [
            event + b"\n\n"
            for event in self.answer.replace(b"\r\n", b"\n").split(b"\n\n")
            if event.strip()
        ]

    def record(self, events: Iterable[bytes], api: Api | None = None) -> Record:
        """Return what the compiled reader says of a response whose body comes in these parts,
        one each ms.
        """
        dialect = (api or self.api).dialect
        response = Response(None if dialect is None else DialectScanner(dialect))
        record = Record(due=1)
        record.keeps_text = True
        response.begin(record)
        for number, part in enumerate([STREAM, *map(chunk, events), LAST_CHUNK], 1):
            response.feed(part, number * 1_000_000)
        return record


class EndpointOnPaper:
    """Tests that need no server."""

    def test_a_body_asks_for_a_stream_and_holds_the_prompt(self, case: Case) -> None:
        """The prompt is sent unchanged."""
        body = self._body(case)
        assert body["stream"] is True
        assert TEXT in _texts(body)

    def test_the_length_of_the_answer_is_asked_for(self, case: Case) -> None:
        """A field limits the tokens of the answer."""
        assert 4321 in [leaf for leaf in _leaves(self._body(case)) if type(leaf) is int]

    def test_further_fields_are_sent(self, case: Case) -> None:
        """Fields of `--extra-body` reach the server."""
        assert "further" in _texts(self._body(case, further="further"))

    def test_other_processes_can_be_given_it(self, case: Case) -> None:
        """It can be pickled: its functions stand at the top of a module."""
        assert pickle.dumps(case.api)

    def test_the_answer_is_read(self, case: Case) -> None:
        """Tokens, counts and finish reason are those of the server."""
        record = case.record(case.events)
        assert record.outcome is Outcome.OK, record.detail
        assert (record.events, record.finish_reason) == (case.tokens, case.finish_reason)
        assert (record.prompt_tokens, record.completion_tokens) == (
            case.prompt_tokens,
            case.completion_tokens,
        )

    def test_tokens_come_with_their_events(self, case: Case) -> None:
        """Each token has the stamp of the event that bears it."""
        bearing = [number for number, delta in enumerate(_deltas(case), 2) if delta.kinds]
        assert case.record(case.events).stamps == [number * 1_000_000 for number in bearing]

    def test_an_answer_cut_anywhere_is_the_same(self, case: Case) -> None:
        """The parts in which an answer arrives change nothing."""
        whole = case.record([case.answer])
        bytewise = case.record(case.answer[i : i + 1] for i in range(len(case.answer)))
        assert (bytewise.outcome, bytewise.events, bytewise.text) == (
            whole.outcome,
            whole.events,
            whole.text,
        )

    def test_an_answer_without_its_end_is_truncated(self, case: Case) -> None:
        """Without a finish reason, an answer is not complete."""
        last = max(number for number, delta in enumerate(_deltas(case)) if delta.finish_reason)
        assert case.record(case.events[:last]).outcome is Outcome.TRUNCATED

    def test_an_error_ends_the_stream(self, case: Case) -> None:
        """An error is not an answer."""
        if case.error:
            assert case.record([case.error]).outcome is Outcome.STREAM_ERROR

    def test_events_with_tokens_need_no_python(self, case: Case) -> None:
        """`Dialect.read` is not called for each token."""
        dialect = case.api.dialect
        if dialect is None:
            return
        calls: list[int] = []

        def read(event: dict[str, Any]) -> Delta:
            calls.append(1)
            return dialect.read(event)

        counted = structs.replace(case.api, dialect=structs.replace(dialect, read=read))
        case.record(case.events, counted)
        assert len(calls) <= max(2, len(case.events) - case.tokens)

    def _body(self, case: Case, **more: Any) -> dict[str, Any]:
        target = Target("http://127.0.0.1", "m", case.api, fields=more)
        body: dict[str, Any] = orjson.loads(target.body(Prompt(TEXT, 3, 4321, "kit/0")))
        return body


def _deltas(case: Case) -> list[Delta]:
    """Return what the reference reader says of each event; an event without data says nothing."""
    deltas = []
    for event in case.events:
        lines = [
            line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")
        ]
        data = b"\n".join(lines)
        deltas.append(
            Delta() if data in (b"", DONE) else reference_parser.parse(data, case.api.dialect)
        )
    return deltas


def _texts(value: Any) -> list[str]:
    return [leaf for leaf in _leaves(value) if isinstance(leaf, str)]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    else:
        yield value
