"""Requests of a traced run carry ids by which the server's spans join theirs."""

import re

from loadgen.core.record import Record
from loadgen.core.request_encoder import RequestEncoder
from loadgen.util.trace_context import new_key, trace_ids, traceparent
from loadgen.workload.endpoints.generation import CHAT
from loadgen.workload.target import Target

KEY = "0123456789abcdef" * 2


def test_header_has_the_form_of_the_standard():
    assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-01", traceparent(KEY, 0))


def test_each_request_of_each_run_has_ids_of_its_own():
    ids = [trace_ids(key, index) for key in (new_key(), new_key()) for index in range(100)]
    assert len({one.trace_id for one in ids}) == len({one.span_id for one in ids}) == 200
    assert trace_ids(KEY, 7) == trace_ids(KEY, 7)


def test_header_is_a_line_of_the_request_beside_the_token_of_its_session():
    record = Record(7)
    record.session_token, record.trace_line = b"cookie: a\r\n", b"traceparent: x\r\n"
    encoder = RequestEncoder(Target("http://server/v1/chat/completions", "m", CHAT))
    head = encoder.encode(record, b"{}").partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert head[-2:] == [b"cookie: a", b"traceparent: x"]
