"""The typed result: its attributes, its JSON, and files of earlier versions."""

from typing import Any

import orjson
import pytest

from loadgen.checks import Check, Verdict, examine
from loadgen.config.settings import RunSettings
from loadgen.report import to_json
from loadgen.report.result import RunResult
from loadgen.report.result.series import RunBrief
from tests.helpers.run_facts import failed, run_data, steady

RUN = [steady(n, due=n * 10, ttft=20 + n, n=5) for n in range(10)]


def made(settings: RunSettings | None = None, records: Any = RUN, **options: Any) -> RunResult:
    told = run_data(records, settings, **options)
    return RunResult.of(told, examine(told))


def test_a_latency_reads_by_metric_statistic_and_clock() -> None:
    late = [steady(n, due=n * 10, sent=n * 10 + 5.0) for n in range(3)]
    result = made(records=late)
    assert result.ttft == result.latency_ms.ttft_due
    assert result.ttft.p50_ms == pytest.approx(20, rel=1e-3)
    assert result.latency_ms.ttft_sent.p50_ms == pytest.approx(15, rel=1e-3)
    assert made(RunSettings(latency_from="sent"), late).ttft.p50_ms == pytest.approx(15, rel=1e-3)


def test_percentiles_that_were_asked_for_stand_beside_the_usual_ones() -> None:
    result = made(RunSettings(metric_percentiles="25,99.9"))
    assert list(result.ttft.percentiles_ms) == ["p25", "p50", "p90", "p99", "p99.9"]
    assert list(result.numbers.percentiles_ms)[:2] == ["p25_ttft_ms", "p99.9_ttft_ms"]
    assert (
        result.numbers.percentiles_ms["p25_ttft_ms"]
        == result.latency_ms.ttft_sent.percentiles_ms["p25"]
    )


def test_the_verdict_has_its_checks_and_reasons() -> None:
    checks = [
        Check("lag p99", False, "9 ms", "1 ms", "free a core", group="B"),
        Check("enough", False, "few", "662", "send more", counts=False, group="D"),
    ]
    result = RunResult.of(run_data(RUN), checks)
    assert result.verdict is Verdict.SUSPECT
    assert [check.name for check in result.failed_checks] == ["lag p99"]
    assert [check.name for check in result.notes] == ["enough"]
    assert result.reasons() == ["lag p99: 9 ms, limit 1 ms"]
    assert result.reasons("A") == []


@pytest.mark.parametrize("detailed", [False, True])
def test_the_json_of_a_result_is_read_again(detailed: bool) -> None:
    settings = RunSettings(slo="ttft_p99<1s", metadata=("gpu=H100", "note=x"), goodput=("ttft:25",))
    result = made(settings, [*RUN, failed(10)], detailed=detailed)
    saved = to_json(result.to_dict())
    again = RunResult.from_dict(orjson.loads(saved))
    assert to_json(again.to_dict()) == saved
    assert (again.columns is not None) is detailed
    assert again.numbers.metadata == {"gpu": "H100", "note": "x"}
    assert again.provenance.settings.goodput == ("ttft:25",)


def test_the_brief_of_a_result_is_read_again() -> None:
    brief = RunBrief.of(made(RunSettings(metadata=("gpu=H100",))))
    again = RunBrief.from_dict(orjson.loads(to_json(brief.to_dict())))
    assert again.to_dict() == brief.to_dict()
    assert again.findings.metadata == ["gpu"]


def test_files_of_earlier_versions_lack_what_came_later() -> None:
    data = made().to_dict()
    later = (
        "early_stops",
        "no_answer_since_s",
        "request_sample",
        "cancelled",
        "silent_streams",
        "targets",
        "timeline",
        "workers",
        "server",
    )
    for name in later:
        del data["loadgen"][name]
    del data["loadgen"]["client"]["starved_requests"]
    for name in ("hidden_tokens", "nan_events", "text_sample", "tpot_over"):
        del data["loadgen"]["tokens"][name]
    result = RunResult.from_dict(data)
    assert (result.workers, result.targets, result.server, result.silent_streams.count) == (
        [],
        [],
        None,
        0,
    )
    assert result.tokens.hidden_tokens == 0


@pytest.mark.parametrize("name", ["verdict", "latency_ms", "provenance", "client"])
def test_a_result_that_is_not_whole_is_an_error(name: str) -> None:
    data = made().to_dict()
    del data["loadgen"][name]
    with pytest.raises(ValueError, match=name):
        RunResult.from_dict(data)


def test_settings_of_another_version_are_left_out() -> None:
    data = made(RunSettings(balance="random")).to_dict()
    data["loadgen"]["provenance"]["settings"]["of_another_version"] = 1
    result = RunResult.from_dict(data)
    assert result.provenance.settings.balance == "random"
    assert result.to_dict() == data
