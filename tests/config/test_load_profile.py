"""A profile is phases, or a file of times and values; what is neither is refused with the
remedy.
"""

from pathlib import Path

import pytest

from loadgen.config.load_profile import CONCURRENCY, RATE, LoadProfile, Phase, Quantity
from loadgen.config.settings import RunSettings, is_bounded_by_time
from loadgen.errors import FLAGS, BadInput


def test_phases_are_constant_rates_changes_and_waves() -> None:
    assert LoadProfile.parse("10@1m, 10-50.5@30s,50~5/10s@2m").phases == (
        Phase(10, 10, 60),
        Phase(10, 50.5, 30),
        Phase(50, 5, 120, 10),
    )


def test_a_profile_is_written_as_it_is_read() -> None:
    text = "10@60s,10-50.5@30s,50~5/10s@120s"
    assert str(LoadProfile.parse(text)) == text


def test_a_load_that_is_on_and_off_is_phases_of_both_until_its_time_is_over() -> None:
    assert str(LoadProfile.parse("5@1m,50/5s+10s@22s")) == "5@60s,50@5s,0@10s,50@5s,0@2s"
    assert LoadProfile.parse("50/5s+10s@30s").mean == pytest.approx(50 / 3)
    assert list(LoadProfile.parse("8/1s+2s@4s", CONCURRENCY).levels()) == [
        (0.0, 8),
        (1.0, 0),
        (3.0, 8),
        (4.0, 0),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("50/5s@1m", "a wave has a period"),
        ("50-60/5s+10s@1m", "a wave has a period"),
        ("50/5s+@1m", "'' is not a time"),
        ("50/5s+0s@1m", "'0s' is not above 0"),
        ("50/1s+1s@1h", "more than 1,000 times on or off"),
    ],
)
def test_a_load_that_is_on_and_off_has_both_times(text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        LoadProfile.parse(text)


def test_steps_are_phases_of_equal_lengths_and_differences() -> None:
    assert str(LoadProfile.parse("5@1m,10..50/5@10m")) == (
        "5@60s,10@120s,20@120s,30@120s,40@120s,50@120s"
    )
    assert str(LoadProfile.parse("30..0/2@10s")) == "30@5s,0@5s"
    assert list(LoadProfile.parse("4..16/3@6s", CONCURRENCY).levels()) == [
        (0.0, 4),
        (2.0, 10),
        (4.0, 16),
        (6.0, 0),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("10..50@1m", "'' is not a number of steps"),
        ("10..50/5s@1m", "'5s' is not a number of steps"),
        ("10..50/1@1m", "'1' is not a number of steps"),
        ("10..50/1001@1m", "'1001' is not a number of steps"),
        ("10..50/5@0s", "'0s' is not above 0"),
    ],
)
def test_steps_have_a_number_and_a_time(text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        LoadProfile.parse(text)


def test_steps_of_a_concurrency_are_whole_numbers() -> None:
    with pytest.raises(BadInput, match="give whole numbers"):
        LoadProfile.parse("4..16/4@4s,1..2/3@3s", CONCURRENCY)


def test_a_file_has_the_times_between_which_the_rate_changes(tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("Seconds,RPS\n0,10\n60,10\n60,50\n90,0\n")
    assert str(LoadProfile.parse(str(file))) == "10@60s,50-0@30s"


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("16@60s,64@30s,16@60s", [(0, 16), (60, 64), (90, 16), (150, 0)]),
        ("2@1s,0@1s,1@1s", [(0, 2), (1, 0), (2, 1), (3, 0)]),
        ("0-4@8s", [(0, 0), (1, 1), (3, 2), (5, 3), (7, 4), (8, 0)]),
        ("4-2@4s,2@1s", [(0, 4), (1, 3), (3, 2), (4, 2), (5, 0)]),
        # cos(2 pi t / 6 s) between 0 and 2 is 1.5 after a period's sixth, and 0.5 after its third.
        ("2~0/6s@9s", [(0, 2), (1, 1), (2, 0), (4, 1), (5, 2), (7, 1), (8, 0), (9, 0)]),
        ("0~2/6s@4.5s", [(0, 0), (1, 1), (2, 2), (4, 1), (4.5, 0)]),
    ],
)
def test_concurrency_is_the_value_rounded_at_each_moment(
    text: str, levels: list[tuple[float, int]]
) -> None:
    found = list(LoadProfile.parse(text, CONCURRENCY).levels())
    assert [level for _, level in found] == [level for _, level in levels]
    assert [at_s for at_s, _ in found] == pytest.approx([at_s for at_s, _ in levels])


@pytest.mark.parametrize("text", ["2.5@1s", "0@5s", "x@1s", "4@0s", "none.csv"])
def test_concurrency_is_a_whole_number(text: str) -> None:
    with pytest.raises(BadInput, match="--concurrency-profile"):
        LoadProfile.parse(text, CONCURRENCY)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("1,10\n2,10\n", "no row at 0 s"),
        ("0,10\n", "only one moment"),
        ("0,10\n5,x\n", "row 2"),
        ("0,10\n5,-1\n", "row 2"),
        ("0,10\n5,1\n4,1\n", "row 3"),
        ("0,10,3\n5,1,3\n", "row 1"),
        ("rate,seconds\n0,10\n5,1\n", "row 1"),
        ("minutes,rate\n0,10\n5,1\n", "row 1"),
        ("seconds,concurrency\n0,10\n5,1\n", "row 1"),
        ("0s,10\n0,10\n5,1\n", "row 1"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path: Path, rows: str, problem: str) -> None:
    file = tmp_path / "rates.csv"
    file.write_text(rows)
    with pytest.raises(BadInput, match=problem):
        LoadProfile.parse(str(file))


def test_a_file_of_a_spreadsheet_may_begin_with_a_mark_of_its_encoding(tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("0,10\n5,10\n", encoding="utf-8-sig")
    assert str(LoadProfile.parse(str(file))) == "10@5s"


@pytest.mark.parametrize(
    ("text", "quantity", "limit"),
    [
        ("1-2000000@5s", RATE, "1,000,000 req/s"),
        ("2000000@5s", CONCURRENCY, "1,000,000 requests in flight"),
    ],
)
def test_a_value_beyond_the_highest_is_refused_with_it(
    text: str, quantity: Quantity, limit: str
) -> None:
    with pytest.raises(BadInput) as refused:
        LoadProfile.parse(text, quantity)
    assert (refused.value.field, refused.value.remedy) == (
        FLAGS.text(quantity.field),
        f"give at most {limit}",
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10@",
        "@5s",
        "-5@3s",
        "10@0s",
        "10@5x",
        "0@5s",
        "10~20@5s",
        "10-20/3s@5s",
        "1e3@5s",
        "none.csv",
    ],
)
def test_what_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--rate-profile"):
        LoadProfile.parse(text)


@pytest.mark.parametrize(
    ("other", "flag"),
    [
        ({"request_rate": 5.0}, "--request-rate"),
        ({"num_prompts": 10}, "--num-prompts"),
        ({"duration": 60.0}, "--duration"),
        (
            {"ramp_up_strategy": "linear", "ramp_up_start_rps": 1.0, "ramp_up_end_rps": 2.0},
            "--ramp-up-strategy",
        ),
    ],
)
def test_a_profile_says_rate_and_length_alone(other: dict[str, object], flag: str) -> None:
    with pytest.raises(BadInput, match=flag):
        RunSettings(base_url="http://127.0.0.1:1", rate_profile="10@5s").replace(**other).checked()


@pytest.mark.parametrize(
    ("other", "flag"),
    [
        ({"request_rate": 5.0}, "--request-rate"),
        ({"num_prompts": 10}, "--num-prompts"),
        ({"duration": 60.0}, "--duration"),
        ({"max_concurrency": 5}, "--max-concurrency"),
        ({"rate_profile": "10@5s"}, "--concurrency-profile"),
        (
            {"ramp_up_strategy": "linear", "ramp_up_start_rps": 1.0, "ramp_up_end_rps": 2.0},
            "--ramp-up-strategy",
        ),
    ],
)
def test_a_concurrency_profile_says_all_of_the_load(other: dict[str, object], flag: str) -> None:
    with pytest.raises(BadInput, match=flag):
        RunSettings(base_url="http://127.0.0.1:1", concurrency_profile="4@5s,8@5s").replace(
            **other
        ).checked()


def test_a_concurrency_profile_is_a_closed_loop_of_its_highest_number() -> None:
    implied = RunSettings(
        base_url="http://127.0.0.1:1", concurrency_profile="4@5s,8-2@5s"
    ).implied()
    assert (implied.max_concurrency, implied.duration) == (8, 10.0)
    assert is_bounded_by_time(implied.checked())


def test_the_settings_of_a_run_hold_phases_and_their_length(tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("0,10\n60,10\n")
    implied = RunSettings(base_url="http://127.0.0.1:1", rate_profile=str(file)).implied()
    assert (implied.rate_profile, implied.duration) == ("10@60s", 60.0)
    assert implied.checked() == implied
