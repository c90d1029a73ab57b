"""The built-in APIs pass the tests that every API must pass, with made-up answers and those of
real servers.
"""

import pytest

from loadgen.testing.endpoint_conformance import Case, EndpointOnPaper
from loadgen.workload.endpoints.generation import CHAT, COMPLETIONS, GENERATE, MESSAGES, RESPONSES
from tests.helpers.captured_responses import Golden, goldens
from tests.helpers.dialect_events import ANSWERS, event
from tests.helpers.response_bytes import DONE, answer, usage
from tests.helpers.response_bytes import event as untyped

ERROR = untyped(error={"message": "no"})
COUNTS = usage(prompt_tokens=7, completion_tokens=2)
WORDS = [
    untyped(choices=[{"index": 0, "text": word, "finish_reason": None}]) for word in ("a", " b")
]
SO_FAR = [
    untyped(
        text=text,
        meta_info={"prompt_tokens": 7, "completion_tokens": tokens, "finish_reason": reason},
    )
    for text, tokens, reason in (("a", 1, None), ("a b", 2, {"type": "length"}))
]
CASES = {
    "chat": Case(
        api=CHAT,
        answer=answer("a", " b").removesuffix(DONE) + COUNTS + DONE,
        tokens=2,
        finish_reason="stop",
        prompt_tokens=7,
        completion_tokens=2,
        error=ERROR,
    ),
    "completions": Case(
        api=COMPLETIONS,
        answer=b"".join(WORDS)
        + untyped(choices=[{"index": 0, "text": "", "finish_reason": "length"}])
        + COUNTS
        + DONE,
        tokens=2,
        finish_reason="length",
        prompt_tokens=7,
        completion_tokens=2,
        error=ERROR,
    ),
    "generate": Case(
        api=GENERATE,
        answer=b"".join(SO_FAR) + DONE,
        tokens=2,
        finish_reason="length",
        prompt_tokens=7,
        completion_tokens=2,
        error=ERROR,
    ),
    "responses": Case(
        api=RESPONSES,
        answer=ANSWERS["responses"],
        tokens=5,
        finish_reason="completed",
        prompt_tokens=7,
        completion_tokens=5,
        error=event("error", code="x", message="no"),
    ),
    "messages": Case(
        api=MESSAGES,
        answer=ANSWERS["messages"],
        tokens=4,
        finish_reason="end_turn",
        prompt_tokens=7,
        completion_tokens=4,
        error=event("error", error={"type": "api_error", "message": "no"}),
    ),
}


def captured(golden: Golden) -> Case:
    """The case of a stream of a real server."""
    facts = golden.facts
    return Case(
        api=golden.api,
        answer=golden.body,
        tokens=facts["content_events"] + facts["reasoning_events"] + facts["other_events"],
        finish_reason=facts["finish_reason"],
        prompt_tokens=-1 if facts["prompt_tokens"] is None else facts["prompt_tokens"],
        completion_tokens=-1 if facts["completion_tokens"] is None else facts["completion_tokens"],
    )


# The kit knows tokens by their text; test_sse_recorded.py tests those without.
CASES |= {
    golden.name: captured(golden)
    for golden in goldens()
    if golden.is_stream and golden.facts["outcome"] == "ok" and "past_end" not in golden.file
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


class TestBuiltIn(EndpointOnPaper):
    """Each in turn."""
