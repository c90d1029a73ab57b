"""Certificates are verified, and a run that did not verify them reports it."""

import ssl

import pytest
import trustme

from loadgen.config.settings import RunSettings
from loadgen.errors import Unreachable
from loadgen.runner.run import run
from tests.helpers.command_line import TOKENIZER
from tests.helpers.hostile_server import echo
from tests.helpers.run_facts import measured, result, steady
from tests.helpers.saved_json import render
from tests.helpers.scripted_server import serving


@pytest.fixture
def tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return context


def settings(url: str, *, insecure: bool) -> RunSettings:
    shape = RunSettings(
        random_input_len=16,
        random_output_len=4,
        num_prompts=1,
        tokenizer=TOKENIZER,
        preflight=False,
    )
    return shape.replace(base_url=url, backend="openai-chat", insecure=insecure)


async def test_untrusted_certificate_is_refused_before_any_request(tls: ssl.SSLContext) -> None:
    async with serving(echo(), tls) as url:
        with pytest.raises(Unreachable, match="certificate"):
            await run(settings(url, insecure=False))


async def test_a_run_that_did_not_verify_says_so_in_the_report_and_in_the_result(
    tls: ssl.SSLContext,
) -> None:
    async with serving(echo(), tls) as url:
        found = await run(settings(url, insecure=True))
    assert found.data["loadgen"]["insecure"] is True
    assert "INSECURE: the server's TLS certificate was not verified" in str(found)


def test_a_run_that_verified_does_not_say_that_it_did_not() -> None:
    made = result(measured([steady()]))
    assert made["loadgen"]["insecure"] is False
    assert "INSECURE" not in render(made)
