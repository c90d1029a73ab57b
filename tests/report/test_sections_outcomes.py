"""What the report says of the bodies of requests."""

import pytest

from loadgen.config.settings import RunSettings
from loadgen.report.sections.outcomes import body_lines
from tests.helpers import saved_json
from tests.helpers.run_facts import result, steady


def told(**options):
    return list(body_lines(saved_json.result(result([steady(0)], RunSettings(**options)))))


def test_a_penalty_that_vllm_would_have_sent_is_named():
    (line,) = told(backend="openai")
    assert "repetition_penalty" in line
    assert "--repetition-penalty 1" in line


@pytest.mark.parametrize(
    "options",
    [
        {"backend": "openai", "repetition_penalty": 1.0},
        {"backend": "openai", "extra_body": {"repetition_penalty": 1.2}},
        {"backend": "openai-chat"},
        {"backend": "sglang-native"},
    ],
)
def test_where_it_was_sent_or_vllm_sends_none_nothing_is_said(options):
    assert told(**options) == []


def test_a_template_that_is_applied_twice_is_named():
    (line,) = told(backend="openai-chat", render_chat_template="whole")
    assert "applies it again" in line
