"""Speed for a user and per GPU, energy and cost follow from tokens, time, GPUs and their power."""

from collections.abc import Sequence
from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.metrics.server.telemetry import Gpu, Telemetry
from loadgen.report.result import RunResult
from loadgen.report.result.rates import Efficiency, energy
from loadgen.report.sections import tokens
from tests.helpers.run_facts import failed, run_data, steady


def gpu(at_s: Sequence[float], power: Sequence[float | None]) -> Gpu:
    others = {name: [None] * len(at_s) for name in ("sm_clock_mhz", "busy_share", "memory_bytes")}
    return Gpu("a GPU", list(at_s), {"power_w": list(power), **others})


# 10 requests a second for 10 s, each of 10 tokens in and 11 out, 5 ms apart; the last ends after
# 10.15 s.
REQUESTS = [steady(i, due=100 * i, ttft=100, gap=5, n=11) for i in range(101)]


def known(**settings: Any) -> Efficiency:
    gpus = settings.pop("read", ())
    found = Efficiency.of(
        run_data(REQUESTS, RunSettings(**settings), telemetry=Telemetry(gpus=gpus))
    )
    assert found is not None
    return found


def test_interactivity_is_the_tokens_of_a_second_at_the_median_tpot() -> None:
    assert known().output_tokens_per_s_per_user == pytest.approx(200, rel=0.001)


def test_rates_are_divided_by_the_gpus_that_are_named() -> None:
    one, four = known(gpus=1), known(gpus=4)
    assert one.output_tokens_per_s_per_gpu is not None
    assert one.output_tokens_per_s_per_gpu == pytest.approx(101 * 11 / 10.15, rel=0.01)
    assert four.output_tokens_per_s_per_gpu == pytest.approx(one.output_tokens_per_s_per_gpu / 4)
    assert one.total_tokens_per_s_per_gpu == pytest.approx(101 * 21 / 10.15, rel=0.01)


def test_gpus_that_nvml_read_are_counted_where_none_are_named() -> None:
    readings = gpu([0, 1], [100, 100])
    assert known(read=(readings, readings)).gpus == 2
    assert known(read=(readings, readings), gpus=8).gpus == 8
    assert known().gpus is None


def test_energy_is_the_power_of_all_gpus_over_the_run() -> None:
    seconds = [float(second) for second in range(-2, 14)]
    found = known(read=(gpu(seconds, [300] * 16), gpu(seconds, [100] * 16)))
    assert found.energy_j == pytest.approx(400 * 10.15, rel=0.01)
    assert found.energy_coverage == pytest.approx(1)
    assert found.energy_j is not None
    assert found.joules_per_output_token == pytest.approx(found.energy_j / (101 * 11))
    assert found.joules_per_token == pytest.approx(found.energy_j / (101 * 21))


def test_power_that_changes_is_integrated_by_trapezoids() -> None:
    assert energy(gpu([0, 4, 8], [100, 300, 300]), 2, 8) == (
        pytest.approx((200 + 300) / 2 * 2 + 300 * 4),
        1,
    )


def test_gaps_in_the_readings_are_told_by_their_share() -> None:
    found = energy(gpu([0, 1, 9, 10], [100, 100, 100, 100]), 0, 10)
    assert found == (pytest.approx(1_000), pytest.approx(0.2))


@pytest.mark.parametrize("readings", [([], []), ([0, 1], [None, None]), ([-5, -4], [100, 100])])
def test_no_energy_is_told_without_readings_of_the_run(
    readings: tuple[list[float], list[float | None]],
) -> None:
    assert energy(gpu(*readings), 0, 10) is None


def test_a_gpu_without_power_leaves_the_energy_unknown() -> None:
    assert known(read=(gpu([0, 1], [100, 100]), gpu([0, 1], [None, None]))).energy_j is None


def test_cost_is_price_times_gpus_times_hours_by_tokens() -> None:
    found = known(gpus=2, gpu_hour_price=3.6)
    assert found.cost_per_million_output_tokens == pytest.approx(
        2 * 3.6 / 3600 * 10.15 / (101 * 11) * 1e6, rel=0.01
    )
    assert found.cost_per_million_tokens == pytest.approx(
        2 * 3.6 / 3600 * 10.15 / (101 * 21) * 1e6, rel=0.01
    )
    assert known(gpus=2).cost_per_million_tokens is None


def test_a_run_without_an_answer_has_none_of_them() -> None:
    assert Efficiency.of(run_data([failed(0)])) is None


def lines(**settings: Any) -> list[str]:
    return list(tokens.efficiency(RunResult.of(run_data(REQUESTS, RunSettings(**settings)), [])))


def test_the_console_shows_what_is_known() -> None:
    assert lines()[0].startswith("Interactivity: 200.0")
    assert [line.partition(":")[0] for line in lines(gpus=2, gpu_hour_price=2.5)] == [
        "Interactivity",
        "Per GPU (2 GPUs)",
        "Cost",
    ]


def test_a_price_without_gpus_names_the_flag() -> None:
    assert lines(gpu_hour_price=2.5)[-1].endswith("give --gpus")


@pytest.mark.parametrize("settings", [{"gpus": 0}, {"gpu_hour_price": -1.0}])
def test_impossible_numbers_are_refused(settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(BadInput, match=name.replace("_", "-")):
        RunSettings(base_url="http://127.0.0.1:1", **settings).checked()
