"""What the report says of the bodies of requests."""

import pytest

from loadgen.config.settings import RunSettings
from loadgen.report.sections import outcomes
from tests.helpers import saved_json
from tests.helpers.console_lines import printed
from tests.helpers.run_facts import result, steady

TWICE = "The prompts have the chat template around them, and the server of a chat applies it again"


def told(**options):
    return printed(outcomes.blocks(saved_json.result(result([steady(0)], RunSettings(**options)))))


def test_a_template_that_is_applied_twice_is_named():
    assert TWICE in told(backend="openai-chat", render_chat_template="whole")


@pytest.mark.parametrize(
    "options",
    [{"backend": "openai", "render_chat_template": "whole"}, {"backend": "openai-chat"}],
)
def test_a_template_that_is_applied_once_is_not(options):
    assert TWICE not in told(**options)
