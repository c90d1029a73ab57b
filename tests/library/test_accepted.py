"""Settings that the library takes, and those that it refuses by the name that a program wrote."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import loadgen
from loadgen import BadInput, RunSettings
from loadgen.config.settings import COMMAND_ALONE
from loadgen.errors import setting
from loadgen.library.accepted import accepted, accepted_for_series

SIMULATED = RunSettings(engine="sim")


def test_a_run_without_a_server_is_refused() -> None:
    for run in (loadgen.run_sync, loadgen.search_sync):
        with pytest.raises(BadInput, match=r"^base_url: no server is named; .*engine sim"):
            run(RunSettings(slo="ttft_p99<1s", request_rate=3.0))


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"json": True}, "result.data"),
        ({"prometheus": "9100"}, "on_progress"),
        ({"workload": "short"}, "RunSettings.of_workload"),
        ({"request_rate": -1.0}, "a number above 0"),
        ({"slo": "ttft_p99"}, ""),
        ({"html": "page.txt"}, "FILE.html"),
        ({"hlog": "/no/such/folder/file"}, "name another"),
    ],
)
def test_setting_is_refused_by_its_field(changes: dict[str, Any], remedy: str) -> None:
    with pytest.raises(BadInput) as caught:
        accepted(RunSettings(**changes))
    assert caught.value.field == next(iter(changes))
    assert remedy in caught.value.remedy
    assert "--" not in str(caught.value)


@pytest.mark.parametrize("name", COMMAND_ALONE)
def test_flag_without_a_field_says_what_a_program_does(name: str) -> None:
    with pytest.raises(BadInput, match="is for the command alone") as caught:
        RunSettings(**{name: 3})  # type: ignore[arg-type]
    assert caught.value.field == name
    assert "--" not in str(caught.value)


def test_misspelled_field_is_refused_with_its_neighbor() -> None:
    with pytest.raises(BadInput, match="did you mean request_rate"):
        RunSettings(requst_rate=3)  # type: ignore[call-arg]


def not_run(call: Callable[[], Any]) -> str:
    with pytest.raises(BadInput) as caught:
        call()
    return caught.value.field


@pytest.mark.parametrize("wrong", [3, "text", {"request_rate": 3}])
def test_argument_of_another_type_is_refused_by_its_name(wrong: Any) -> None:
    assert not_run(lambda: loadgen.run_sync(wrong)) == "settings"
    assert not_run(lambda: loadgen.run_sync(SIMULATED, dataset=wrong)) == "dataset"
    assert not_run(lambda: loadgen.run_sync(SIMULATED, on_progress=wrong)) == "on_progress"
    assert not_run(lambda: loadgen.search_sync(wrong)) == "settings"
    assert not_run(lambda: loadgen.search_sync(SIMULATED, on_point=wrong)) == "on_point"


@pytest.mark.parametrize(
    "function", [loadgen.load, loadgen.load_all, loadgen.load_series, loadgen.from_records]
)
def test_path_of_another_type_is_refused(function: Callable[[Any], object]) -> None:
    assert not_run(lambda: function(None)) == "path"


def test_api_key_and_header_are_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    asked = accepted(
        SIMULATED.replace(api_key=f"@{tmp_path / 'key'}", header=(f"X-Team=@{tmp_path / 'key'}",))
    )
    assert (asked.api_key, asked.header) == ("secret", ("X-Team=secret",))


@pytest.mark.parametrize(
    "changes", [{"save_result": True}, {"html": "a.html"}, {"records": "r.jsonl"}]
)
def test_series_write_no_files(changes: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"save\(path\)"):
        accepted_for_series(RunSettings(**changes))


def test_flags_in_an_error_become_fields_and_other_words_stay() -> None:
    remedy = f"add {setting.request_rate}, or give the engine --dtype half"
    with pytest.raises(BadInput) as caught:
        raise BadInput(setting.fail_if, f"given with {setting.max_concurrency}", remedy)
    assert str(caught.value) == (
        "fail_if: given with max_concurrency; add request_rate, or give the engine --dtype half"
    )
    assert caught.value.field == "fail_if"
