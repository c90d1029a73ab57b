"""The token of a session: the value of a response header, sent back with the later turns."""

from loadgen.client.retries import next_attempt
from loadgen.client.sessions import SessionTokens
from loadgen.core.record import Record


def turn(index: int, number: int) -> Record:
    record = Record(index)
    record.turn = number
    return record


def sent_after(tokens: SessionTokens, *heads: bytes) -> list[bytes | None]:
    """What the turns of a session send that are answered with these fields."""
    sent = []
    for number, head in enumerate(heads):
        record = turn(8 + number, number)
        tokens.prepare(record)
        assert record.keeps_head
        sent.append(record.session_token)
        record.response_head = b"HTTP/1.1 200 OK\r\n" + head
        tokens.take(record)
        assert record.response_head is None
    return sent


def test_later_turns_send_the_token_of_the_answer_before() -> None:
    fields = b"Content-Type: x\r\nX-Session-TOKEN:  a:b= \r\n"
    assert sent_after(SessionTokens("x-session-token"), fields, fields) == [
        None,
        b"x-session-token: a:b=\r\n",
    ]


def test_the_latest_token_is_sent_and_an_answer_without_one_keeps_it() -> None:
    heads = (b"T: 1\r\n", b"T: 2\r\n", b"U: 3\r\n", b"T:\r\n")
    assert sent_after(SessionTokens("T"), *heads) == [None, b"T: 1\r\n", b"T: 2\r\n", b"T: 2\r\n"]


def test_cookies_are_sent_without_attributes_and_each_by_its_name() -> None:
    heads = (
        b"Set-Cookie: a=1; Path=/\r\nset-cookie: b=x=y; Secure\r\n",
        b"Set-Cookie: a=2\r\n",
        b"",
    )
    assert sent_after(SessionTokens("Set-Cookie"), *heads) == [
        None,
        b"Cookie: a=1; b=x=y\r\n",
        b"Cookie: a=2; b=x=y\r\n",
    ]


def test_sessions_do_not_share_tokens_and_are_forgotten_at_their_end() -> None:
    tokens = SessionTokens("T")
    sent_after(tokens, b"T: 1\r\n")
    other, later = turn(20, 0), turn(9, 1)
    tokens.prepare(other)
    tokens.prepare(later)
    assert (other.session_token, later.session_token) == (None, b"T: 1\r\n")
    tokens.end(later)
    forgotten = turn(10, 2)
    tokens.prepare(forgotten)
    assert forgotten.session_token is None


def test_a_further_attempt_sends_the_same_token() -> None:
    refused = turn(9, 1)
    refused.keeps_head, refused.session_token = True, b"T: 1\r\n"
    again = next_attempt(refused, 5)
    assert (again.keeps_head, again.session_token) == (True, b"T: 1\r\n")
