"""A rate profile is written as phases or as a file of times and rates; what is neither is refused with the remedy."""

from pathlib import Path

import pytest

from loadgen.config.rate_profile import Phase, RateProfile
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput


def test_phases_are_constant_rates_changes_and_waves() -> None:
    assert RateProfile.parse("10@1m, 10-50.5@30s,50~5/10s@2m").phases == (
        Phase(10, 10, 60),
        Phase(10, 50.5, 30),
        Phase(50, 5, 120, 10),
    )


def test_a_profile_is_written_as_it_is_read() -> None:
    text = "10@60s,10-50.5@30s,50~5/10s@120s"
    assert str(RateProfile.parse(text)) == text


def test_a_file_has_the_times_between_which_the_rate_changes(tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("seconds,requests_per_s\n0,10\n60,10\n60,50\n90,0\n")
    assert str(RateProfile.parse(str(file))) == "10@60s,50-0@30s"


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("1,10\n2,10\n", "no row at 0 s"),
        ("0,10\n", "only one moment"),
        ("0,10\n5,x\n", "row 2"),
        ("0,10\n5,-1\n", "row 2"),
        ("0,10\n5,1\n4,1\n", "row 3"),
        ("0,10,3\n5,1,3\n", "row 2"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path: Path, rows: str, problem: str) -> None:
    file = tmp_path / "rates.csv"
    file.write_text(rows)
    with pytest.raises(BadInput, match=problem):
        RateProfile.parse(str(file))


@pytest.mark.parametrize(
    "text", ["", "10@", "@5s", "-5@3s", "10@0s", "10@5x", "0@5s", "10~20@5s", "10-20/3s@5s", "1e3@5s", "none.csv"]
)
def test_what_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--rate-profile"):
        RateProfile.parse(text)


@pytest.mark.parametrize(
    ("other", "flag"),
    [
        ({"request_rate": 5.0}, "--request-rate"),
        ({"num_prompts": 10}, "--num-prompts"),
        ({"duration": 60.0}, "--duration"),
        ({"ramp_up_strategy": "linear", "ramp_up_start_rps": 1.0, "ramp_up_end_rps": 2.0}, "--ramp-up-strategy"),
    ],
)
def test_a_profile_says_rate_and_length_alone(other: dict[str, object], flag: str) -> None:
    with pytest.raises(BadInput, match=flag):
        RunSettings(base_url="http://127.0.0.1:1", rate_profile="10@5s").replace(**other).checked()


def test_the_settings_of_a_run_hold_phases_and_their_length(tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("0,10\n60,10\n")
    implied = RunSettings(base_url="http://127.0.0.1:1", rate_profile=str(file)).implied()
    assert (implied.rate_profile, implied.duration) == ("10@60s", 60.0)
    assert implied.checked() == implied
