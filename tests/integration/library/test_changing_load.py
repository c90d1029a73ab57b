"""A load that changes, against the simulator: several workers together have what is asked, and phases have figures."""

import loadgen

RUN = loadgen.RunSettings(random_input_len=32, random_output_len=16)


async def test_two_workers_share_a_concurrency_profile() -> None:
    result = await loadgen.run(RUN.replace(concurrency_profile="2@1s,6@1s,2@1s", workers=2))
    before, burst, after = result.data["loadgen"]["phases"]
    assert result.data["max_concurrent_requests"] == 6
    assert result.data["completed"] == sum(phase["ok"] for phase in (before, burst, after))
    assert burst["ok"] > before["ok"] > 0 < after["ok"]
    assert after["recovered_after_s"] is not None


async def test_two_workers_share_a_population_of_users() -> None:
    settings = RUN.replace(users=8, think_time="0.2:0.4", duration=3.0, workers=2)
    result = await loadgen.run(settings)
    # An answer takes 16 tokens of 8 ms and more, so that each user sends at most every 0.32 s.
    assert 8 <= result.data["completed"] <= 8 * 3 / 0.32 + 8
    assert result.data["max_concurrent_requests"] <= 8
    assert result.data["loadgen"]["closed_loop"]
