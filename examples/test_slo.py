"""Test a server against its SLO, with loadgen's pytest fixtures.

pytest examples/test_slo.py    against the built-in simulator; name your server in LOAD in place of
                               engine="sim", or leave that out and give pytest
                               --loadgen-base-url URL
"""

import pytest

import loadgen

LOAD = loadgen.RunSettings(engine="sim", request_rate=200, random_input_len=64, random_output_len=8)


def test_two_hundred_requests_a_second_are_answered_in_time(loadgen_run):
    result = loadgen_run(LOAD, num_prompts=700, slo="ttft_p99<2s,tpot_p99<200ms,error_rate<1%")
    assert result.numbers.total_output_tokens == 700 * 8


def test_a_limit_may_be_on_the_result_too(loadgen_run):
    loadgen_run(LOAD, num_prompts=200).assert_slo("ttft_median<1s")


@pytest.mark.asyncio
async def test_the_same_in_a_test_that_is_a_coroutine(loadgen_run_async):
    result = await loadgen_run_async(LOAD, num_prompts=200)
    assert result.snapshot.ok == 200
