"""What servers send, as hypothesis strategies: valid responses from a grammar, and the ways in
which bytes go wrong.
"""

from typing import Any

import orjson
from hypothesis import strategies as st

from loadgen.core import server_times
from tests.helpers.captured_responses import goldens
from tests.helpers.captured_responses import payloads as payloads_of

GOLDENS = [golden for golden in goldens() if golden.is_stream and golden.api.dialect is None]
SEEDS = [
    b"".join(b"data: " + payload + b"\n\n" for payload in payloads_of(golden)) for golden in GOLDENS
]
LINE_ENDS = [b"\n", b"\r\n", b"\r"]

# -- events

texts = st.one_of(
    st.none(),
    st.text(max_size=8),
    st.sampled_from(["", '"', "\\", '\\"content":"', "é", "\n", "😀", "\u2028", "\x7f"]),
)
numbers = st.one_of(
    st.integers(-9, 9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**62), 2**62),
)
junk = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
calls = st.fixed_dictionaries(
    {}, optional={"function": st.fixed_dictionaries({}, optional={"arguments": texts})}
)
inner_parts = st.lists(
    st.fixed_dictionaries({}, optional={"type": texts, "text": texts}), max_size=2
)
parts = st.fixed_dictionaries(
    {},
    optional={
        "type": texts,
        "text": texts,
        "thinking": st.one_of(texts, inner_parts),
        "extra": junk,
    },
)
delta_objects = st.fixed_dictionaries(
    {},
    optional={
        "role": texts,
        "content": st.one_of(
            texts, texts, texts, st.lists(st.one_of(parts, parts, parts, junk), max_size=3)
        ),
        "reasoning": texts,
        "reasoning_content": texts,
        "refusal": texts,
        "tool_calls": st.one_of(st.none(), st.lists(calls, max_size=2)),
        "thinking": st.one_of(texts, junk),
        "reasoning_details": st.lists(
            st.one_of(junk, st.fixed_dictionaries({}, optional={"text": texts, "summary": texts})),
            max_size=2,
        ),
        "error": st.sampled_from([None, None, None, {"code": 1}]),
        "extra": junk,
    },
)
REASONS = ("stop", "length", "", None, "null", "None", "abort", "content_filter")
items = st.one_of(junk, st.lists(junk, max_size=3))
logprobs = st.one_of(
    junk, st.fixed_dictionaries({}, optional={"content": items, "tokens": items, "extra": junk})
)
choices = st.fixed_dictionaries(
    {},
    optional={
        "index": st.sampled_from([0] * 15 + [None, 0.0, "0", -1, 1]),
        "matched_stop": st.one_of(st.none(), st.integers(0, 9), texts, junk),
        "stop_reason": st.one_of(st.none(), st.integers(0, 9), texts),
        "delta": st.one_of(delta_objects, st.none()),
        "text": texts,
        "finish_reason": st.one_of(st.sampled_from(REASONS), texts),
        "usage": st.sampled_from([None, None, {"prompt_tokens": 3, "completion_tokens": 2}]),
        "logprobs": logprobs,
        "token_ids": items,
    },
)
counts = st.one_of(
    st.integers(0, 6),  # about as many as there are events
    st.none(),
    st.integers(0, 10**9),
    st.integers(-1, 10**10),
    st.sampled_from([0.0, 3.0, 1e3, 2.5]),
)
durations = st.one_of(
    st.floats(0, 1e6),
    st.integers(0, 10**6),
    st.sampled_from([None, -1, -0.0, 1796053214.25, 1e18, 2**62, True, "1.5"]),
)


def times_at(where: str) -> dict[str, st.SearchStrategy[Any]]:
    """The keys by which servers say times in this member, each with a duration."""
    said = [saying.keys for saying in server_times.SAYINGS if saying.where == where]
    return {key: durations for keys in said for key in keys}


times = {
    where: st.one_of(junk, st.fixed_dictionaries({}, optional=times_at(where) | {"extra": junk}))
    for where in ("metrics", "timings", "stats", "time_info")
}
usages = st.fixed_dictionaries(
    {},
    optional={
        "prompt_tokens": counts,
        "completion_tokens": counts,
        "prompt_tokens_details": st.one_of(
            st.none(), st.fixed_dictionaries({}, optional={"cached_tokens": counts})
        ),
        "completion_tokens_details": st.one_of(
            st.none(),
            junk,
            st.fixed_dictionaries({}, optional={"reasoning_tokens": st.one_of(counts, junk)}),
        ),
        "total_tokens": counts,
        "input_tokens": counts,
        "prompt_cache_hit_tokens": counts,
        "extra": junk,
        **times_at("usage"),
    },
)
likely_chunks = st.fixed_dictionaries(
    {"choices": st.lists(choices, max_size=2)},
    optional={"id": st.text(max_size=5), "usage": usages, "extra": junk, **times},
)
odd_chunks = st.fixed_dictionaries(
    {},
    optional={
        "object": st.one_of(st.sampled_from(["chat.completion.chunk", "error"]), texts),
        "choices": st.one_of(st.lists(choices, max_size=2), junk),
        "usage": st.one_of(st.none(), usages, junk),
        "error": junk,
        "extra": junk,
    },
)
finish_reasons = st.fixed_dictionaries(
    {"type": st.one_of(st.sampled_from(["stop", "length", "abort", ""]), texts)},
    optional={
        "length": counts,
        "matched": st.one_of(st.none(), st.integers(-9, 10**10), texts, junk),
    },
)
so_far_chunks = st.fixed_dictionaries(  # of SGLang's /generate
    {
        "text": st.sampled_from(["", "a", "a b", "a b\u00e9", 'a "b"']),
        "meta_info": st.fixed_dictionaries(
            {
                "completion_tokens": st.integers(0, 4),
                "finish_reason": st.one_of(st.none(), st.none(), finish_reasons),
            },
            optional={
                "id": texts,
                "prompt_tokens": counts,
                "cached_tokens": counts,
                "extra": junk,
                **times_at("meta_info"),
            },
        ),
    },
    optional={
        "output_ids": st.lists(st.integers(0, 9), max_size=4),
        "index": st.sampled_from([0, 0, 0, 1, None]),
    },
)
odd_so_far_chunks = st.fixed_dictionaries(
    {
        "meta_info": st.one_of(
            junk, st.fixed_dictionaries({}, optional={"finish_reason": junk, "prompt_tokens": junk})
        )
    },
    optional={
        "text": st.one_of(texts, junk),
        "choices": junk,
        "usage": junk,
        "index": junk,
        "error": junk,
    },
)


Chunks = st.SearchStrategy[dict[str, Any]]
any_chunks: Chunks = st.one_of(
    likely_chunks, likely_chunks, odd_chunks, so_far_chunks, so_far_chunks, odd_so_far_chunks
)


@st.composite
def payloads(draw: st.DrawFn, chunks: Chunks = any_chunks) -> bytes:
    """An event's data: a chunk with its keys in any order, packed, spread out, or escaped to
    ASCII.
    """
    chunk = draw(chunks)
    keys = draw(st.permutations(list(chunk)))
    ordered = {key: chunk[key] for key in keys}
    dumped = orjson.dumps(
        ordered, option=orjson.OPT_INDENT_2 if draw(st.integers(0, 4)) == 0 else None
    )
    if draw(st.integers(0, 4)) == 0:
        escaped = (c if c < "\x80" else c.encode("utf-16-be").hex() for c in dumped.decode())
        dumped = "".join(
            c if len(c) == 1 else f"\\u{c[:4]}" + (f"\\u{c[4:]}" if c[4:] else "") for c in escaped
        ).encode()
    return dumped


@st.composite
def events(draw: st.DrawFn, chunks: Chunks) -> bytes:
    """One event of a stream, or something that stands between events; lines end with LF."""
    match draw(st.integers(0, 11)):
        case 0:
            return draw(
                st.sampled_from(
                    [b": ping\n", b": ping\n\n", b"\n", b"event: message\n", b"id: 1\nretry: 3\n"]
                )
            )
        case 1:
            return draw(
                st.sampled_from(
                    [
                        b"data\n",
                        b"data\n\n",
                        b"data:\n\n",
                        b"data: \n\n",
                        b"dat: x\n",
                        b"datas: x\n",
                    ]
                )
            )
        case 2:
            return b"data: [DONE]\n\n"
    space = draw(st.sampled_from([b" ", b" ", b"", b"  "]))
    return (
        b"".join(b"data:" + space + line + b"\n" for line in draw(payloads(chunks)).split(b"\n"))
        + b"\n"
    )


@st.composite
def bodies(draw: st.DrawFn, chunks: Chunks) -> bytes:
    """A whole body: drawn, or of chat recorded from a real server (its beginning and its end)."""
    if chunks is any_chunks and draw(st.integers(0, 3)) == 0:
        seed = draw(st.sampled_from(SEEDS)).split(b"\n\n")
        body = b"\n\n".join(seed[: draw(st.integers(0, 4))] + seed[-draw(st.integers(1, 4)) :])
    else:
        body = b"".join(draw(st.lists(events(chunks), max_size=6)))
    bom = draw(st.sampled_from([b"", b"", b"", b"\xef\xbb\xbf"]))
    return bom + body.replace(b"\n", draw(st.sampled_from(LINE_ENDS)))


# -- responses

plain_headers = st.sampled_from(
    [
        b"Content-Type: text/event-stream",
        b"content-type:text/event-stream; charset=utf-8",
        b"Content-Type: application/json",
        b"Server: x",
        b"X-Folded: a\r\n b",
        b"X-Empty:",
        b"Connection: close",
        b"Connection: Keep-Alive",
        b"Connection: upgrade, close",
        b"Connection: closest",
        b"Keep-Alive: timeout=5, max=100",
        b"keep-alive: max=1,timeout=70",
        b"Keep-Alive: timeout=99999999",
        b"Content-Encoding: identity",
        b"X-Envoy-Upstream-Service-Time: 12",
        b"openai-processing-ms: x",
        b'server-timing: db;dur=2, queue;desc="a";dur=1.5,total;dur=9',
        b"Server-Timing: miss",
    ]
)
odd_lines = [
    b"HTTP/1.0 200 OK",
    b"HTTP/1.1 200",
    b"HTTP/1.1 204 No",
    b"HTTP/1.1 304 No",
    b"HTTP/1.1 500 No",
]
odd_lines += [
    b"HTTP/1.1 429 Too many",
    b"HTTP/1.1 999 x",
    b"HTTP/1.1 099 x",
    b"http/1.1 200 OK",
    b"HTTP/2 200",
    b"x",
]
status_lines = st.one_of(st.just(b"HTTP/1.1 200 OK"), st.sampled_from(odd_lines))
framings = st.sampled_from(
    ["chunked", "chunked", "chunked", "length", "length", "close", "short", "both", "gzip", "te"]
)


@st.composite
def responses(draw: st.DrawFn, chunks: Chunks = any_chunks) -> bytes:
    """All bytes of one response, framed in one of the ways of HTTP/1.1; a few are not what the
    standard allows.
    """
    body = draw(bodies(chunks))
    framing = draw(framings)
    lines = draw(st.lists(plain_headers, max_size=4))
    if framing in ("chunked", "both", "te"):
        coding = {"te": b"gzip, chunked"}.get(
            framing, draw(st.sampled_from([b"chunked", b"Chunked", b"chunked \t"]))
        )
        lines.insert(draw(st.integers(0, len(lines))), b"Transfer-Encoding: " + coding)
    if framing in ("length", "short", "both"):
        length = len(body) + (draw(st.integers(-20, 20)) if framing == "short" else 0)
        line = (
            draw(
                st.sampled_from(
                    [b"Content-Length: %d", b"content-length:%d ", b"Content-Length: 0%d"]
                )
            )
            % length
        )
        lines.insert(draw(st.integers(0, len(lines))), line)
    if framing == "gzip":
        lines.append(b"Content-Encoding: gzip")
    head = b"\r\n".join([draw(status_lines), *lines]) + b"\r\n\r\n"
    interim = draw(
        st.sampled_from(
            [b""] * 4
            + [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 x\r\nContent-Type: a/json\r\n\r\n"]
        )
    )
    return interim + head + (draw(chunked(body)) if framing in ("chunked", "both", "te") else body)


@st.composite
def chunked(draw: st.DrawFn, body: bytes) -> bytes:
    """`body` in chunks of one size, with or without extensions and trailers."""
    size = draw(st.integers(1, 400))
    form = draw(
        st.sampled_from([b"%x\r\n%s\r\n", b"%X;a=b\r\n%s\r\n", b"0%x \r\n%s\r\n", b"%x\n%s\n"])
    )
    cut = [body[i : i + size] for i in range(0, len(body), size)]
    last = draw(st.sampled_from([b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"000\r\n\r\n", b"0;x\n\n"]))
    return b"".join(form % (len(piece), piece) for piece in cut) + last


# -- mutations

WORDS = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b"data:",
    b"data: [DONE]\n\n",
    b"\n\n",
    b"0\r\n\r\n",
    b"\xef\xbb\xbf",
    b"\x00",
]
WORDS += [
    b"\n\nevent: error\n",
    b"\n\nerror: no\n",
    b"\n{}\n",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"1e5",
    b"-0",
    b"01",
    b"\\u00e9",
    b"\\ud800",
    b"\xff",
    b"NaN",
    b"-Infinity",
]
WORDS += [
    b"\n\nevent: error\n",
    b"\n\nerror: no\n",
    b"\n{}\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b" ",
    b"\t",
    b'"content":"x",',
]
WORDS += [
    b"\n\nevent: error\n",
    b"\n\nerror: no\n",
    b"\n{}\n",
    b'"error":{"message":"no"},',
    b'"finish_reason":"stop",',
    b'"choices":[],',
    b'"usage":null,',
    b'"delta":{},',
]


@st.composite
def mutated(draw: st.DrawFn, wires: st.SearchStrategy[bytes]) -> bytes:
    """A response with a few bytes flipped, cut out, repeated, or put in; or cut off."""
    wire = draw(wires)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(wire)))
        size = draw(st.integers(1, 30))
        match draw(st.integers(0, 5)):
            case 0:
                wire = wire[:at] + bytes([draw(st.integers(0, 255))]) + wire[at + 1 :]
            case 1:
                wire = wire[:at] + wire[at + size :]
            case 2:
                wire = wire[:at] + wire[at : at + size] * 2 + wire[at + size :]
            case 3:
                wire = wire[:at]
            case _:
                wire = wire[:at] + draw(st.sampled_from(WORDS)) + wire[at:]
    return wire
