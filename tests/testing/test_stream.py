"""Stream and StreamFormat: one streamed answer, read plainly."""

from typing import Any

import pytest

from loadgen.testing.process import Process
from loadgen.testing.stream import DONE, Stream, StreamFormat
from tests.helpers.stream_habits import reasoning_key, usage_with


def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": delta, "finish_reason": finish}], **more}


USAGE = {"completion_tokens": 2}
TEXT = [
    event({"role": "assistant", "content": ""}),
    event({"content": "a"}),
    event({"content": "b"}),
]


@pytest.mark.parametrize(
    ("events", "with_usage", "done"),
    [
        (
            [*TEXT, event({}, "stop"), {"choices": [], "usage": USAGE}, DONE],
            "an event of its own",
            True,
        ),
        ([*TEXT, event({}, "stop", usage=USAGE)], "the finish", False),
        (
            [*(row | {"usage": USAGE} for row in TEXT), event({}, "stop", usage=USAGE), DONE],
            "every event",
            True,
        ),
        ([*TEXT, event({}, "stop"), DONE], None, True),
    ],
)
def test_habits_of_a_server_are_told_by_its_events(
    events: list[Any], with_usage: str | None, done: bool
) -> None:
    found = StreamFormat(events)
    assert found.deltas[0] == {"role": "assistant", "content": ""}
    assert (found.token_events, found.finish_reason, reasoning_key(found)) == (2, "stop", None)
    assert (usage_with(found), found.done) == (with_usage, done)
    assert found.usage == (USAGE if with_usage else None)


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_reasoning_has_either_of_two_names(key: str) -> None:
    found = StreamFormat([event({key: "hm"}), event({"content": "a"}, "stop")])
    assert (reasoning_key(found), found.token_events) == (key, 2)


def test_stream_format_of_no_events_is_empty() -> None:
    found = StreamFormat([])
    assert (found.deltas, found.finish_reason, found.usage, found.done) == ([], None, None, False)


@pytest.mark.integration
def test_a_stream_is_read_to_its_end(roofline: Process) -> None:
    with Stream(roofline.url, "m", max_tokens=3) as stream:
        found = StreamFormat([stream.first(), *stream])
    assert found.token_events == 3
    assert found.done


@pytest.mark.integration
def test_response_that_is_not_a_stream_raises_its_status(roofline: Process) -> None:
    with pytest.raises(ValueError, match=r"^4\d\d "):
        Stream(roofline.url, "m", max_tokens=-1)


@pytest.mark.integration
def test_a_server_that_is_not_there_is_an_os_error() -> None:
    with pytest.raises(OSError, match="refused"):
        Stream("http://127.0.0.1:9", "m")
