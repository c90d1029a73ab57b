"""Settings that the library takes, and those that it refuses by the name that a program wrote."""

from pathlib import Path
from typing import Any

import pytest

from loadgen import BadInput, RunSettings
from loadgen.config.python_names import python_names
from loadgen.library.accepted import accepted, accepted_for_series


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"json": True}, "result.data"),
        ({"prometheus": "9100"}, "on_progress"),
        ({"workload": "short"}, "RunSettings.of_workload"),
        ({"result_dir": "out"}, "save_result=True"),
        ({"result_filename": "a.json"}, "save_result=True"),
        ({"request_rate": -1.0}, "a number above 0"),
        ({"slo": "ttft_p99"}, ""),
        ({"html": "page.txt"}, "FILE.html"),
        ({"hlog": "/no/such/folder/file"}, "name another"),
    ],
)
def test_setting_is_refused_by_its_field(changes: dict[str, Any], remedy: str) -> None:
    with pytest.raises(BadInput) as caught, python_names():
        accepted(RunSettings(**changes))
    assert caught.value.field == next(iter(changes))
    assert remedy in caught.value.remedy
    assert "--" not in str(caught.value)


def test_api_key_and_header_are_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    asked = accepted(RunSettings(api_key=f"@{tmp_path / 'key'}", header=(f"X-Team=@{tmp_path / 'key'}",)))
    assert (asked.api_key, asked.header) == ("secret", ("X-Team=secret",))


@pytest.mark.parametrize("changes", [{"save_result": True}, {"html": "a.html"}, {"records": "r.jsonl"}])
def test_series_write_no_files(changes: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"save\(path\)"):
        accepted_for_series(RunSettings(**changes))


def test_flags_in_an_error_become_fields_and_other_words_stay() -> None:
    remedy = "add --request-rate or --rate, or give the engine --dtype half"
    with pytest.raises(BadInput) as caught, python_names("fail_if"):
        raise BadInput("--fail-if", "given with --max-concurrency", remedy)
    assert str(caught.value) == (
        "fail_if: given with max_concurrency; add request_rate or request_rate, or give the engine --dtype half"
    )
    assert caught.value.field == "fail_if"
