"""Random bytes: the wire never crashes or hangs, and the scanner agrees with the real JSON parser."""

import os

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen import deltas
from loadgen.outcomes import Outcome
from tests.wire.bytes_of import HEAD, answer, chunked, facts, read, streamed

EXAMPLES = int(os.environ.get("LOADGEN_FUZZ_EXAMPLES", "200"))
fuzzed = settings(max_examples=EXAMPLES, deadline=None)

texts = st.one_of(st.none(), st.text(max_size=8), st.sampled_from(["", '"', "\\", '\\"content":"', "é", "\n"]))
junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
counts = st.one_of(st.none(), st.integers(0, 10**9))
delta_objects = st.fixed_dictionaries(
    {},
    optional={
        "role": texts,
        "content": texts,
        "reasoning": texts,
        "reasoning_content": texts,
        "refusal": texts,
        "tool_calls": st.one_of(
            st.none(),
            st.lists(
                st.fixed_dictionaries({}, optional={"function": st.fixed_dictionaries({"arguments": texts})}),
                max_size=2,
            ),
        ),
        "extra": junk,
    },
)
items = st.one_of(junk, st.lists(junk, max_size=3))
logprobs = st.one_of(junk, st.fixed_dictionaries({}, optional={"content": items, "tokens": items, "extra": junk}))
choices = st.fixed_dictionaries(
    {},
    optional={
        "index": st.integers(0, 3),
        "delta": delta_objects,
        "text": texts,
        "finish_reason": texts,
        "logprobs": logprobs,
        "token_ids": items,
    },
)
chunks = st.fixed_dictionaries(
    {},
    optional={
        "id": st.text(max_size=5),
        "object": st.sampled_from(["chat.completion.chunk", "error"]),
        "choices": st.lists(choices, max_size=2),
        "usage": st.one_of(
            st.none(),
            st.fixed_dictionaries(
                {},
                optional={
                    "prompt_tokens": counts,
                    "completion_tokens": counts,
                    "prompt_tokens_details": st.one_of(
                        st.none(), st.fixed_dictionaries({}, optional={"cached_tokens": counts})
                    ),
                    "extra": junk,
                },
            ),
        ),
        "error": st.one_of(st.none(), junk),
        "extra": junk,
    },
)


@fuzzed
@given(chunk=chunks, pretty=st.booleans(), order=st.randoms())
def test_fuzz_the_scanner_finds_what_the_parser_finds(chunk: dict[str, object], pretty: bool, order: object) -> None:
    keys = list(chunk)
    order.shuffle(keys)  # type: ignore[attr-defined]
    payload = orjson.dumps({key: chunk[key] for key in keys}, option=orjson.OPT_INDENT_2 if pretty else None)
    told = deltas.parse(payload)
    lines = b"".join(b"data: " + line + b"\n" for line in payload.split(b"\n")) + b"\n"
    _, record = read([streamed(lines, 10_000)])
    if told.error is not None:
        assert record.outcome is Outcome.STREAM_ERROR
        return
    assert record.events == (told.kinds != 0)
    assert record.content_events == bool(told.kinds & deltas.CONTENT)
    assert record.finish_reason == told.finish_reason
    assert record.prompt_tokens == told.prompt_tokens
    assert record.completion_tokens == told.completion_tokens
    assert record.cached_tokens == told.cached_tokens


@fuzzed
@given(data=st.data())
def test_fuzz_slices_do_not_matter(data: st.DataObject) -> None:
    wire = streamed(answer("one", " two", " three"), data.draw(st.integers(1, 300)))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(wire) - 1), max_size=12)))
    parts = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    assert facts(read(parts)[1]) == facts(read([wire])[1])


@fuzzed
@given(noise=st.binary(max_size=300), at=st.integers(0, 400), step=st.integers(1, 400))
def test_fuzz_noise_ends_in_exactly_one_outcome(noise: bytes, at: int, step: int) -> None:
    clean = streamed(answer("one", " two"), 50)
    wire = clean[:at] + noise + clean[at + len(noise) :]
    parts = [wire[i : i + step] for i in range(0, len(wire), step)]
    response, record = read(parts, closed=True)
    assert response.complete or response.wants_reader
    assert record.outcome is not None or response.wants_reader


@fuzzed
@given(noise=st.binary(max_size=200))
def test_fuzz_any_body_ends_in_an_outcome(noise: bytes) -> None:
    _, record = read([HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(noise + b"\n\n", 64)], closed=True)
    assert record.outcome in (Outcome.EMPTY, Outcome.PROTOCOL_ERROR, Outcome.STREAM_ERROR)
