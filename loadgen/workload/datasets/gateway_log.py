"""`GatewayLog`: the requests in the log of a gateway, one JSON object a line, as rows of a trace.

Gateways name the same things differently; the first name of each that a line has is read. A line
that is no request to the API is left out, and counted by its reason.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.util.clock import NS_PER_S
from loadgen.workload import endpoints
from loadgen.workload.datasets.prompt_rows import TIME, Row, RowFile
from loadgen.workload.datasets.recorded_requests import BODY, Bodies, check_api
from loadgen.workload.datasets.trace_times import NS_PER_MS, columns_of, time_ns

LOG = "--from-log"
REMEDY = "give a log with a JSON object a line, with the time and the body of a request"
TIMES = (TIME, "@timestamp", "time", "ts", "start_time", "startTime", "created_at", "request_time")
BODIES = (BODY, "request_body", "requestBody", "request", "payload")
OUTPUTS = ("output_tokens", "completion_tokens")
ANSWERS = ("response_body", "responseBody", "response")
NO_TIME, NO_BODY = "no time", "no body"  # reasons that a name may remedy
PARAMETERS = "model_parameters"  # of a request whose messages stand in the line itself
DATES_NS = 10**18  # since 1970: in September 2001; no log is older
# Units of a time that is a number, by the least of a date after 2001 in each.
UNITS = ((10**18, 1), (10**15, 1_000), (10**12, NS_PER_MS), (0, NS_PER_S))
Change = Callable[[dict[str, Any], int | None], dict[str, Any]]


class LeftOut(Exception):
    """A line that is no row, with the reason."""


class GatewayLog:
    """The requests of a log.

    Attributes:
        lines: The number of its lines.
        left_out: How many of them are no requests to the API, by the reason.
        count: How many are.

    Args:
        path: The log.
        settings: The API that the requests are to be sent to, and `--trace-column`.
        change: Makes the body that is kept from the one in the log and the tokens of its answer;
            raises `LeftOut`.

    Raises:
        BadInput: The log cannot be read, or has no request, or its times have no unit; or the API
            cannot be sent bodies.
    """

    def __init__(self, path: Path, settings: RunSettings, change: Change) -> None:
        self._file = RowFile(path, "jsonl", strict=False, remedy=REMEDY)
        columns = columns_of(settings, ("time", "body"))
        self._times = (columns["time"],) if "time" in columns else TIMES
        self._bodies = (columns["body"],) if "body" in columns else BODIES
        unit_s = settings.trace_time_unit
        self._unit_ns = None if unit_s is None else round(unit_s * NS_PER_S)
        api = endpoints.find(settings)
        check_api(api)
        self._asked = "messages" if api.takes_messages else "prompt"
        self._fields = Bodies(settings.replace(trace_column=()), api, Counter())
        self._change = change
        self.lines = len(self._file)
        self.left_out = Counter[str]()
        times_ns = dict[int, int]()
        for number in range(self.lines):
            try:
                line = self._line(number)
                self._check(self._body(line))
                times_ns[number] = self._time_ns(line)
            except LeftOut as reason:
                self.left_out[str(reason)] += 1
        latest_ns = max(times_ns.values(), default=DATES_NS)
        if latest_ns < DATES_NS and self._unit_ns is None:
            problem = f"the times in {path} are no dates, so their unit is unknown"
            raise BadInput(LOG, problem, f"give it in seconds: {setting.trace_time_unit} 0.001")
        if latest_ns >= DATES_NS:  # others are those of fields that were not set
            unset = [number for number, at_ns in times_ns.items() if at_ns < DATES_NS]
            self.left_out.update({"a time before 2001": len(unset)} if unset else {})
            times_ns = {number: at_ns for number, at_ns in times_ns.items() if at_ns >= DATES_NS}
        if not times_ns:
            (most, count), *_ = self.left_out.most_common(1)
            problem = f"{path} has no request: {most} in {count:,} of {self.lines:,} lines"
            remedy = REMEDY
            if most in (NO_TIME, NO_BODY):
                remedy = "name its fields: --trace-column time=NAME body=NAME"
            if most == self._other_api:
                remedy = (
                    f"give {setting.backend} openai-chat, openai or anthropic, as they were sent"
                )
            raise BadInput(LOG, problem, remedy)
        self._order = sorted(times_ns, key=times_ns.__getitem__)
        self._times_ns = times_ns

    @property
    def _other_api(self) -> str:
        return f"a body without {self._asked}"

    @property
    def count(self) -> int:
        """The number of requests so far known to be rows."""
        return self.lines - self.left_out.total()

    def rows(self) -> Iterator[bytes]:
        """Yield the rows of a trace in the order of their times, from the first of which they
        count.
        """
        first_ns = self._times_ns[self._order[0]]
        for number in self._order:
            line = self._line(number)
            tokens = _output_tokens(line)
            try:
                body = self._change(self._body(line), tokens)
            except LeftOut as reason:
                self.left_out[str(reason)] += 1
                continue
            at_ms = (self._times_ns[number] - first_ns) / NS_PER_MS
            row = {TIME: at_ms, "id": f"line/{number + 1}", BODY: body}
            yield orjson.dumps(row if tokens is None else row | {"output_tokens": tokens}) + b"\n"

    def _line(self, number: int) -> dict[str, Any]:
        try:
            return self._file.values(number)
        except BadInput:
            raise LeftOut("no JSON object") from None

    def _body(self, line: Mapping[str, Any]) -> dict[str, Any]:
        body = next(
            (value for value in (_object(line, name) for name in self._bodies) if value), None
        )
        if body is None and self._asked in line:
            extra = _object(line, PARAMETERS) or {}
            tools = {"tools": line["tools"]} if line.get("tools") else {}
            body = {"model": line.get("model"), self._asked: line[self._asked]} | tools | extra
        if body is None:
            raise LeftOut(NO_BODY)
        if not body.get(self._asked):
            raise LeftOut(self._other_api)
        return body

    def _check(self, body: dict[str, Any]) -> None:
        """Leave out a body that a run would refuse."""
        try:
            Row.of(self._fields({BODY: body}), "")
        except BadInput as error:
            raise LeftOut(f"a body that cannot be sent ({error.problem})") from None
        except ValueError as error:
            raise LeftOut(f"a body that {error}") from None

    def _time_ns(self, line: Mapping[str, Any]) -> int:
        value = next((line[name] for name in self._times if line.get(name) is not None), None)
        try:
            if self._unit_ns is not None:
                return time_ns(value, self._unit_ns)
            if isinstance(value, str) and not value.replace(".", "", 1).isdecimal():
                return time_ns(value, None)
            size = abs(float(value))  # type: ignore[arg-type]  # a TypeError is a reason, too
            return time_ns(value, next(unit_ns for least, unit_ns in UNITS if size >= least))
        except (TypeError, ValueError, OverflowError):
            raise LeftOut(NO_TIME) from None


def unchanged(body: dict[str, Any], output_tokens: int | None) -> dict[str, Any]:
    """Keep a body as it is."""
    return body


def _object(line: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Return an object of a line, which may stand there as a text."""
    value = line.get(name)
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


def _output_tokens(line: Mapping[str, Any]) -> int | None:
    """Return the tokens of the answer, if the line has them, or the usage of its answer."""
    answers = [_object(line, name) or {} for name in ANSWERS]
    parts = [line, *(_object(part, "usage") or {} for part in (line, *answers))]
    counts: Sequence[Any] = [part.get(name) for part in parts for name in OUTPUTS]
    return next((count for count in counts if type(count) is int and count > 0), None)
