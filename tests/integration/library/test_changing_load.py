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
