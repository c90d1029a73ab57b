"""The bytes of a request are the head of its class, the lines that it alone has, and its body."""

import re

import pytest

from loadgen.core.record import Record
from loadgen.core.request_encoder import RequestEncoder
from loadgen.workload.endpoints.generation import CHAT
from loadgen.workload.target import Target

URL, BODY = "http://server:8000/v1/chat/completions", b'{"a":1}'


def record(index: int = 7, turn: int = -1, class_number: int = 0) -> Record:
    made = Record(index)
    made.turn, made.class_number = turn, class_number
    return made


def lines(request: bytes) -> list[bytes]:
    head, _, body = request.partition(b"\r\n\r\n")
    assert body == BODY
    return head.split(b"\r\n")


def test_a_request_has_its_number_and_the_length_of_its_body() -> None:
    head = lines(RequestEncoder(Target(URL, "m", CHAT)).encode(record(), BODY))
    assert head[0] == b"POST /v1/chat/completions HTTP/1.1"
    assert re.fullmatch(rb"X-Request-Id: loadgen-[0-9a-f]{16}-7", head[-2])
    assert head[-1] == b"Content-Length: 7"


@pytest.mark.parametrize("index", [0, 2**40, -1, -1_000_000_000])
def test_requests_beside_the_run_have_negative_numbers(index: int) -> None:
    head = lines(RequestEncoder(Target(URL, "m", CHAT)).encode(record(index), BODY))
    assert head[-2].endswith(b"-%d" % index)


def test_a_percent_sign_in_a_path_or_a_header_stays_one() -> None:
    target = Target("http://server/v1/a%20b", "m", CHAT, headers={"X-Load": "50%d"})
    head = lines(RequestEncoder(target).encode(record(), BODY))
    assert head[0] == b"POST /v1/a%20b HTTP/1.1"
    assert b"X-Load: 50%d" in head


def test_a_class_that_no_target_has_is_refused() -> None:
    with pytest.raises(IndexError):
        RequestEncoder(Target(URL, "m", CHAT)).encode(record(class_number=1), BODY)


def test_turns_of_a_session_name_its_first_request() -> None:
    encoder = RequestEncoder(Target(URL, "m", CHAT))
    first, third = (
        lines(encoder.encode(record(index, turn), BODY))[-1] for index, turn in ((5, 0), (7, 2))
    )
    assert first == third
    assert re.fullmatch(rb"X-Session-ID: [0-9a-f]{16}-5", third)


def test_the_token_of_a_session_is_the_last_line() -> None:
    later = record(7, 2)
    later.session_token = b"Cookie: a=1\r\n"
    assert lines(RequestEncoder(Target(URL, "m", CHAT)).encode(later, BODY))[-1] == b"Cookie: a=1"


def test_a_class_has_headers_of_its_own_which_are_secrets_of_its_records() -> None:
    classes = tuple(
        Target(URL, "m", CHAT, headers={"X-Key": key}) for key in ("first-key", "second-key")
    )
    encoder = RequestEncoder(Target(URL, "m", CHAT, classes=classes))
    second = record(class_number=1)
    assert b"X-Key: second-key" in lines(encoder.encode(second, BODY))
    assert second.redaction is not None
    assert second.redaction("it has second-key") == "it has (given)"


def test_ids_of_two_encoders_differ() -> None:
    target = Target(URL, "m", CHAT)
    assert len({RequestEncoder(target).encode(record(), BODY) for _ in range(2)}) == 2


def test_an_answer_in_one_piece_is_noted_in_its_record() -> None:
    whole, scored = record(), record()
    RequestEncoder(Target(URL, "m", CHAT, streams=False)).encode(whole, BODY)
    RequestEncoder(Target(URL, "m", CHAT, streams=False, generates=False)).encode(scored, BODY)
    assert (whole.is_whole, whole.results) == (True, -1)
    assert (scored.is_whole, scored.results) == (False, 0)
