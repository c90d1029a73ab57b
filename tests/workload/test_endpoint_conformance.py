"""The built-in APIs pass the tests that every API must pass, with made-up answers and those of
real servers.
"""

import pytest

from loadgen.core.event_flags import CONTENT
from loadgen.testing.endpoint_conformance import Case, EndpointOnPaper
from loadgen.workload.endpoints.generation import CHAT, COMPLETIONS, GENERATE, MESSAGES, RESPONSES
from loadgen.workload.endpoints.llamacpp import COMPLETION
from loadgen.workload.prompt import Prompt
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
OF_LLAMACPP = [  # of llama.cpp b11549 with SmolLM2-135M-Instruct; the last without settings
    untyped(
        index=0,
        content=word,
        tokens=[token],
        stop=False,
        id_slot=-1,
        tokens_predicted=number,
        tokens_evaluated=3,
    )
    for number, (word, token) in enumerate([(" fox", 16438), (" with", 351)], 1)
] + [
    untyped(
        index=0,
        content="",
        tokens=[],
        id_slot=0,
        stop=True,
        model="SmolLM2-135M-Instruct.Q4_1",
        tokens_predicted=2,
        tokens_evaluated=3,
        prompt="The quick brown",
        truncated=False,
        stop_type="limit",
        stopping_word="",
        tokens_cached=4,
        timings={"cache_n": 0, "prompt_n": 3, "prompt_ms": 70.868},
    )
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
    "llama.cpp": Case(
        api=COMPLETION,
        answer=b"".join(OF_LLAMACPP),
        tokens=2,
        finish_reason="limit",
        prompt_tokens=3,
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


def test_llamacpp_has_names_of_its_own_for_lengths_penalties_and_ends() -> None:
    prompt = Prompt("Why?", 3, 64, "test/0")
    body = COMPLETION.body(prompt, "m", {"repetition_penalty": 1.1, "ignore_eos": True})
    assert body == {
        "model": "m",
        "prompt": "Why?",
        "n_predict": 64,
        "repeat_penalty": 1.1,
        "ignore_eos": True,
    }
    assert COMPLETION.dialect is not None
    last = {"content": "!", "stop": True, "stop_type": "word", "stopping_word": "END"}
    delta = COMPLETION.dialect.read(last | {"timings": {"cache_n": 2, "prompt_ms": 3.5}})
    assert (delta.text, delta.answer, delta.kinds) == ("!", "!", CONTENT)
    assert (delta.finish_reason, delta.matched_stop, delta.cached_tokens) == ("word", "END", 2)
    assert delta.times == {"by": "llamacpp", "prefill": 3_500_000}


class TestBuiltIn(EndpointOnPaper):
    """Each in turn."""
