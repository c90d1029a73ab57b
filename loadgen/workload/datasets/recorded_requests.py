"""`RecordedRequests`: a trace whose rows have bodies, which are sent as they are at their times.

A row has `timestamp` (ms) and `body`, the JSON body of a request to the endpoint of the run, and
optionally `id`, `input_tokens` and `output_tokens`. Only what the run itself decides is replaced:
the model, and whether the answer is a stream. Each replacement is counted.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from loadgen.config.request_check import check_fields
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.util.clock import NS_PER_S
from loadgen.workload import endpoints
from loadgen.workload.datasets.prompt_rows import TIME, RowFile, checked_count, count_tokens
from loadgen.workload.datasets.trace_times import NS_PER_MS, columns_of, count_within, time_ns
from loadgen.workload.endpoints.api import LENGTHS, Api
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import LazyTokenizer

REQUESTS = "requests"  # the format of such a trace
BODY = "body"
ROW_FIELDS = (TIME, BODY, "id", "input_tokens", "output_tokens")
REMEDY = f"give rows of {', '.join(ROW_FIELDS)}; {TIME} and {BODY} are required"
FIRST_BYTES = 1 << 20
BATCH = 256  # rows read and encoded at a time
# What the run decides of each request: what it sends to, and what it can measure.
DECIDED = ("model", "stream", "stream_options")


def is_one(path: Path) -> bool:
    """Return whether the first row of a file has a body."""
    try:
        with path.open("rb") as file:
            first = file.readline(FIRST_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError:
        return False  # whoever reads it says why
    return first.startswith(b"{") and b'"body"' in first


def check_api(api: Api) -> None:
    """Refuse an API that recorded bodies are not sent to.

    Raises:
        BadInput: It is one.
    """
    if api.prompt_fields or not api.length_field:
        problem = f"recorded bodies are not sent to {api.path}"
        remedy = f"use {setting.backend} openai-chat, openai or anthropic"
        raise BadInput(setting.backend, problem, remedy)


@dataclass(frozen=True)
class RecordedRequests:
    """The requests of a file in the order of their times.

    Attributes:
        rows: The file.
        order: The numbers of the rows within the run, in the order of their times.
        due_ns: When each of them is due, ns from the first row; None: the arrival process of the
            run decides.
        settings: The settings of the run.
        tokenizer: Loaded for the first row without `input_tokens`.
        replaced: How often a recorded value of each field that the run decides was another one.
    """

    rows: RowFile
    order: Sequence[int] = field(repr=False)
    due_ns: Sequence[int | None] = field(repr=False)
    settings: RunSettings
    tokenizer: LazyTokenizer
    replaced: Counter[str]

    @classmethod
    def of(cls, path: Path, settings: RunSettings) -> "RecordedRequests":
        """Read the times of a file.

        Args:
            path: The file.
            settings: The settings of the run.

        Raises:
            BadInput: The file cannot be read, a row has no time, or the API of the run cannot send
                bodies.
        """
        api = endpoints.find(settings)
        check_api(api)
        replaced = Counter[str]()
        rows = RowFile(
            path, "jsonl", strict=False, convert=Bodies(settings, api, replaced), remedy=REMEDY
        )
        keeps_times = settings.trace_times == "keep"
        column = columns_of(settings, ("time",)).get("time", TIME)
        unit_s = settings.trace_time_unit
        unit_ns = NS_PER_MS if unit_s is None else round(unit_s * NS_PER_S)
        times_ns = [0] * len(rows)
        for number in range(len(rows) if keeps_times else 0):
            times_ns[number] = _time_of(rows, number, column, unit_ns)
        order = sorted(range(len(rows)), key=times_ns.__getitem__)
        ascending_ns = [times_ns[number] for number in order]
        count = count_within(settings, path, ascending_ns)
        due_ns = [
            round((at_ns - ascending_ns[0]) / settings.time_scale) if keeps_times else None
            for at_ns in ascending_ns[:count]
        ]
        return cls(rows, order[:count], due_ns, settings, LazyTokenizer(settings), replaced)

    @property
    def requests(self) -> int:
        """The number of requests within the duration of the run."""
        return len(self.order)

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield the first `count` requests, fewer if the file ends before.

        Raises:
            BadInput: A row cannot be sent, or has no length and there is no tokenizer.
        """
        self.replaced.clear()
        pairs = islice(zip(self.order, self.due_ns, strict=True), count)
        while batch := list(islice(pairs, BATCH)):
            rows = [self.rows[number] for number, _ in batch]
            counts = count_tokens(rows, self.tokenizer)
            for row, tokens, (number, due_ns) in zip(rows, counts, batch, strict=True):
                output_tokens = row.output_tokens or self.settings.custom_output_len
                if output_tokens < 0:
                    problem = f"is -1, and row {number + 1} of {self.rows.path} has no length"
                    raise BadInput(setting.custom_output_len, problem, "give a length")
                yield Prompt(
                    row.text,
                    tokens,
                    output_tokens,
                    row.source,
                    row.messages,
                    due_ns=due_ns,
                    fields=row.fields,
                    verbatim=True,
                )

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        keeps_times = self.settings.trace_times == "keep"
        return {
            "name": "trace",
            "rule": "as recorded, " + ("at their times" if keeps_times else "at the run's rate"),
            "format": REQUESTS,
            "time_scale": self.settings.time_scale if keeps_times else None,
            "replaced": dict(self.replaced),
            **self.rows.provenance(),
            **self.tokenizer.provenance(),
        }


@dataclass(frozen=True)
class Bodies:
    """Makes the fields of a `Row` from a recorded request.

    Attributes:
        settings: The settings of the run.
        api: The API that the bodies are sent to.
        replaced: Counts what of them is replaced.
    """

    settings: RunSettings
    api: Api
    replaced: Counter[str]

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Divide a body into its prompt and its other fields.

        Raises:
            ValueError: It cannot be sent.
        """
        known = (*ROW_FIELDS, columns_of(self.settings, ("time",)).get("time"))
        if unknown := [name for name in row if name not in known]:
            raise ValueError(f"has an unknown field {unknown[0]!r}")
        body = row.get(BODY)
        if not isinstance(body, dict):
            raise ValueError("has no body that is an object")
        asked = "messages" if self.api.takes_messages else "prompt"
        if asked not in body:
            problem = f"has a body without {asked}, which {self.api.path} needs"
            raise ValueError(f"{problem}: {setting.backend} names the API of the bodies")
        fields = {name: value for name, value in body.items() if name not in (*DECIDED, asked)}
        check_fields("its body", fields, disable_stream=self.settings.disable_stream)
        self._count_replaced(body)
        maximums = (checked_count(name, body.get(name)) for name in LENGTHS)
        maximum = next((count for count in maximums if count is not None), None)
        return {
            "id": row.get("id"),
            asked: body[asked],
            "input_tokens": row.get("input_tokens"),
            "output_tokens": row.get("output_tokens") if maximum is None else maximum,
            "extra_body": fields,
        }

    def _count_replaced(self, body: Mapping[str, Any]) -> None:
        if body.get("model") not in (None, self.settings.model):
            self.replaced["model"] += 1
        if bool(body.get("stream")) != self.settings.streams:
            self.replaced["stream"] += 1


def _time_of(rows: RowFile, number: int, column: str, unit_ns: int) -> int:
    value = rows.values(number).get(column)
    try:
        at_ns = time_ns(value, unit_ns)
        if not 0 <= at_ns < 1 << 62:
            raise ValueError
    except (TypeError, ValueError, OverflowError) as error:
        shown = "no" if value is None else repr(value)[:40]
        problem = f"has {shown} {column}, which is no time"
        raise rows.refusal(number, problem) from error
    return at_ns
