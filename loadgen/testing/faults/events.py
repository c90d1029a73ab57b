"""Faults and oddities of events: what a stream says, and how it is written."""

import orjson

from loadgen.testing.answer import Answer
from loadgen.testing.ask import Ask
from loadgen.testing.faults.fault import Steps, fault
from loadgen.testing.faults.framing import body
from loadgen.testing.replies import DONE, LAST_CHUNK, STREAM, chunk, delta, error_body, event, streamed, usage

BLOCK = 1 << 16


def streaming(*events: bytes) -> Steps:
    """A whole response, each event in a chunk and a write of its own."""
    yield STREAM
    for data in events:
        yield chunk(data)
    yield LAST_CHUNK


def with_odd(ask: Ask, odd: bytes) -> Steps:
    """The good answer with one odd event after its first token."""
    answer = Answer.to(ask)
    yield from streaming(answer.role + answer.tokens[0], odd, *answer.tokens[1:], answer.finish, answer.usage, DONE)


@fault
def no_finish(ask: Ask) -> Steps:
    """Ends a stream with [DONE] that never gave a finish reason."""
    answer = Answer.to(ask)
    yield from streaming(answer.role, *answer.tokens, answer.usage, DONE)


@fault
def no_done(ask: Ask) -> Steps:
    """Ends a stream after finish reason and usage without [DONE]."""
    yield from streaming(*Answer.to(ask).events(with_usage=True)[:-1])


@fault
def after_done(ask: Ask) -> Steps:
    """Sends further events, broken ones too, after [DONE]."""
    yield from streaming(*Answer.to(ask).events(with_usage=True), b"data: {broken\n\n", delta(content="late"))


@fault
def stream_error(ask: Ask) -> Steps:
    """Sends an error as an event after the first token, and ends the stream."""
    answer = Answer.to(ask)
    yield from streaming(
        answer.role + answer.tokens[0], b"data: " + error_body("the fault stream-error", 500) + b"\n\n"
    )


@fault
def error_after_end(ask: Ask) -> Steps:
    """Sends an error as an event after the last token to a request with ignore_eos; else a good answer."""
    answer = Answer.to(ask)
    end = [answer.finish, answer.usage, DONE]
    if ask.fields.get("ignore_eos"):
        end = [b"data: " + error_body("the fault error-after-end", 500) + b"\n\n"]
    yield from streaming(answer.role, *answer.tokens, *end)


@fault
def stream_error_done(ask: Ask) -> Steps:
    """Sends an error as an event after the first token, then finish reason and [DONE] as if all were well."""
    yield from with_odd(ask, b"data: " + error_body("the fault stream-error-done", 500) + b"\n\n")


@fault
def done_only(ask: Ask) -> Steps:
    """Sends nothing but [DONE]."""
    yield from streaming(DONE)


@fault
def no_choices(ask: Ask) -> Steps:
    """Sends events that have no choices."""
    yield from streaming(event(id="x"), event(id="x", choices=[]), event(id="x", choices=None), DONE)


@fault
def role_only(ask: Ask) -> Steps:
    """Sends role and finish reason, and no token."""
    yield from streaming(delta(role="assistant", content=""), delta("stop"), DONE)


@fault
def reasoning(ask: Ask) -> Steps:
    """Answers well, reasoning first: two tokens of it."""
    answer = Answer.to(ask)
    thoughts = [delta(reasoning=" so"), delta(reasoning_content=" then")]
    yield from streaming(answer.role, *thoughts, *answer.tokens, answer.finish, DONE)


@fault
def tool_calls(ask: Ask) -> Steps:
    """Answers well, with the arguments of a tool's call instead of text."""
    name = delta(tool_calls=[{"index": 0, "id": "call", "function": {"name": "find", "arguments": ""}}])
    parts = [delta(tool_calls=[{"index": 0, "function": {"arguments": " 1"}}])] * ask.tokens
    yield from streaming(delta(role="assistant"), name, *parts, delta("tool_calls"), DONE)


@fault
def usage_end(ask: Ask) -> Steps:
    """Answers well, and tells the counts of tokens at the end, asked or not."""
    yield from streaming(*Answer.to(ask).events(with_usage=True))


@fault
def usage_each(ask: Ask) -> Steps:
    """Answers well, and tells the counts of tokens so far with each of them."""
    answer = Answer.to(ask)
    counted = []
    for number in range(ask.tokens):
        choices = [{"index": 0, "delta": {"content": f" word{number}"}}]
        counted.append(event(choices=choices, usage={"prompt_tokens": 1, "completion_tokens": number + 1}))
    yield from streaming(answer.role, *counted, answer.finish, answer.usage, DONE)


@fault
def usage_absent(ask: Ask) -> Steps:
    """Answers well, and never tells the counts of tokens, asked or not."""
    yield from streaming(*Answer.to(ask).events(with_usage=False))


@fault
def many_tokens(ask: Ask, tokens: int = 3) -> Steps:
    """Answers well, NUMBER tokens in each event."""
    answer, size = Answer.to(ask), max(1, tokens)
    groups = [min(size, ask.tokens - start) for start in range(0, ask.tokens, size)]
    yield from streaming(
        answer.role, *(delta(content=" word" * group) for group in groups), answer.finish, answer.usage, DONE
    )


@fault
def one_segment(ask: Ask) -> Steps:
    """Answers well, all of the response in one write."""
    yield streamed(body(ask), BLOCK)


@fault
def byte_by_byte(ask: Ask) -> Steps:
    """Answers well, each byte in a write of its own."""
    for byte in streamed(body(ask)):
        yield bytes([byte])


@fault
def split_utf8(ask: Ask) -> Steps:
    """Answers well, each write ending inside a character of several bytes."""
    data = streamed(b"".join([*(delta(content=" é€😀") for _ in range(ask.tokens)), delta("stop"), DONE]), BLOCK)
    while data:
        cut = next((i for i in range(1, len(data)) if data[i] & 0xC0 == 0x80), len(data))
        yield data[:cut]
        data = data[cut:]


@fault
def cr(ask: Ask) -> Steps:
    """Answers well, with lines that end in CR."""
    yield streamed(body(ask).replace(b"\n", b"\r"))


@fault
def crlf(ask: Ask) -> Steps:
    """Answers well, with lines that end in CRLF."""
    yield streamed(body(ask).replace(b"\n", b"\r\n"))


@fault
def bom(ask: Ask) -> Steps:
    """Answers well, after a byte order mark."""
    yield streamed(b"\xef\xbb\xbf" + body(ask))


@fault
def comments(ask: Ask) -> Steps:
    """Answers well, with comments and other fields between events."""
    events = Answer.to(ask).events(with_usage=True)
    yield from streaming(*(b": ping\n\nevent: message\nid: 7\nretry: 10\n" + data for data in events))


@fault
def multi_line(ask: Ask) -> Steps:
    """Answers well, with events whose data is spread over several lines."""
    yield streamed(body(ask).replace(b',"choices"', b'\ndata: ,"choices"'))


@fault
def no_space(ask: Ask) -> Steps:
    """Answers well, with `data:` and no space after it."""
    yield streamed(body(ask).replace(b"data: ", b"data:"))


@fault
def no_blank_line(ask: Ask) -> Steps:
    """Answers well, but no blank line ends the last event, which has the finish reason."""
    answer = Answer.to(ask)
    yield from streaming(answer.role, *answer.tokens, answer.finish.removesuffix(b"\n\n"))


@fault
def long_line(ask: Ask, size: int = 1_000_000) -> Steps:
    """Answers well, with one line of NUMBER bytes of text."""
    yield streamed(delta(content="x" * size) + delta("stop") + DONE, BLOCK)


@fault
def many_events(ask: Ask, count: int = 100_000) -> Steps:
    """Answers well, with NUMBER events, many in a write."""
    token = delta(content=" a")
    at_once = BLOCK // len(token)
    yield STREAM
    for start in range(0, count, at_once):
        yield chunk(token * min(at_once, count - start))
    yield chunk(delta("stop") + usage(prompt_tokens=ask.prompt_tokens, completion_tokens=count) + DONE) + LAST_CHUNK


@fault
def bad_json(ask: Ask) -> Steps:
    """Sends an event that is no JSON after the first token."""
    yield from with_odd(ask, b'data: {"choices": [}\n\n')


@fault
def null_delta(ask: Ask) -> Steps:
    """Answers well, with an event whose delta is null."""
    yield from with_odd(ask, event(choices=[{"index": 0, "delta": None, "finish_reason": None}]))


@fault
def wrong_shape(ask: Ask, which: int = 0) -> Steps:
    """Sends, after the first token, JSON of a wrong shape: 0 choices no list, 1 a choice no object, 2 content no text,
    3 a delta no object, 4 usage no object, 5 not an object at all, 6 a count below 0."""
    shapes: list[object] = [
        {"choices": {}},
        {"choices": [3]},
        {"choices": [{"delta": {"content": 7}}]},
        {"choices": [{"delta": "x"}]},
        {"choices": [], "usage": 1},
        [1],
        {"choices": [], "usage": {"completion_tokens": -4}},
    ]
    yield from with_odd(ask, b"data: " + orjson.dumps(shapes[which % len(shapes)]) + b"\n\n")


@fault
def choice_index(ask: Ask) -> Steps:
    """Answers with a second choice (index 1) beside the first, one event for each token of each."""
    answer = Answer.to(ask)
    second = event(id="x", choices=[{"index": 1, "delta": {"content": " other"}, "finish_reason": None}])
    ends = [answer.finish, event(choices=[{"index": 1, "delta": {}, "finish_reason": "stop"}])]
    yield from streaming(answer.role, *(token + second for token in answer.tokens), *ends, DONE)
