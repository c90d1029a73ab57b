"""A frame of the live view: its rows, and what it leaves out on a small terminal."""

import pytest
from msgspec import structs

from loadgen.cli.live.frame import MAX_CHART_HEIGHT
from loadgen.cli.live.progress_line import OVERLOADED
from loadgen.config.settings import RunSettings
from loadgen.metrics.progress import DONE, PHASES, Progress
from loadgen.util.terminal_text import display_width
from tests.helpers.live_text import SETTINGS, row, running, seen, sketch

MINUTE = [running(second / 4) for second in range(1, 150)]
FAILING = running(
    37.25,
    failures={"refused": 2, "status(503)": 1},
    server={"running": 98, "waiting": 1, "kv_usage": 0.34},
)


def test_a_whole_frame() -> None:
    assert seen(*MINUTE, FAILING) == [
        "qwen3-8b, 100 req/s (Poisson), random 1024 in, 128 out, 6000 requests",
        "running   ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  60%     0:37   about 0:24 left",
        "3 of 3628 failed | sent on time",
        "",
        "                        now      so far      in all",
        "requests due        100.0/s     100.0/s        3725   asked 100/s",
        "requests sent       100.0/s     100.0/s        3725",
        "requests ended      100.0/s      97.3/s        3625   of 6000",
        "output tokens        1000/s     986.6/s       36750",
        "in flight               100   oldest 1.0 s",
        "failed                    3   refused 2, status(503) 1",
        "",
        "latency (ms)            p50         p90         p99       count",
        "TTFT                   40.9        40.9        41.7         100",
        "ICL (chunks)           10.2        10.2        10.3        1000",
        "E2EL                   1309        1309        1309         100",
        "sent late by           0.02        0.02        0.02         100",
        "client             12% busy",
        "server            running     98   waiting      1    KV cache  34%",
    ]


# -- what is shown


@pytest.mark.parametrize("phase", PHASES[:3])
def test_before_the_clock_starts_there_is_one_line(phase: str) -> None:
    assert seen(Progress(phase)) == [phase]
    assert seen(Progress("preparing", 2.0, scheduled=10240, ended=1024)) == [
        "━━━━━━━━━━  10%  preparing prompts: 1024 of 10240, 0:18 left"
    ]


def test_why_a_server_is_waited_for_is_said_to_the_end() -> None:
    waiting = Progress(
        "waiting", 3.0, note="http://a:8000/v1/models: no connection to a:8000 (Connection refused)"
    )
    lines = seen(waiting, width=60)
    assert " ".join(lines) == f"waiting for the server 3 s: {waiting.note}"
    assert max(map(len, lines)) <= 60
    assert seen(waiting, width=60, height=1) == lines[:1]


def test_control_characters_of_an_engine_are_escaped() -> None:
    (line,) = seen(Progress("starting", 3.0, note="\x1b[2Jloaded\r"))
    assert line == "starting the engine 3 s: \\x1b[2Jloaded\\r"


def test_first_frame_has_no_invented_values() -> None:
    lines = seen(Progress("running", 0.0, scheduled=10, sending_s=9.0))
    assert row(lines, "requests sent") == "n/a n/a 0"
    assert row(lines, "TTFT") == "n/a n/a n/a 0"
    assert row(lines, "client") == "0% busy"


def test_now_is_of_the_last_seconds_and_so_far_of_all() -> None:
    slow = [
        running(20 + second / 4, ended=1900 + 5 * second, streamed_tokens=19_000)
        for second in range(1, 25)
    ]
    lines = seen(*MINUTE[:80], *slow)
    assert row(lines, "requests ended") == "20.0/s 77.7/s 2020 of 6000"
    assert row(lines, "output tokens").startswith("0.0/s")


def test_tokens_without_events_are_scaled_by_ended_answers() -> None:
    lines = seen(running(10, output_tokens=1800, counted_tokens=900, streamed_tokens=950))
    assert row(lines, "output tokens") == "190.0/s 190.0/s 1900"


def test_while_answers_are_waited_for_the_rate_of_sending_stays_what_it_was() -> None:
    draining = running(70.0, "draining", ended=5800, in_flight=200)
    lines = seen(running(59.75), running(60.0), draining)
    assert row(lines, "draining").endswith("97% 1:10 200 answers open")
    assert row(lines, "requests sent") == "0.0/s 100.0/s 6000"


def test_once_a_run_was_interrupted_only_what_was_sent_is_to_come() -> None:
    lines = seen(running(10.0, "draining", failures={"cancelled": 5000}, never_sent=5000))
    assert row(lines, "draining").endswith("90% 0:10 100 answers open")
    assert row(lines, "requests ended").endswith("of 1000")


def test_last_frame_is_complete() -> None:
    lines = seen(*MINUTE, running(61.0, DONE))
    assert row(lines, "done").endswith("100% 1:01")
    assert row(lines, "requests ended").endswith("6000 of 6000")


def test_requests_without_a_slot_are_told_apart_from_late_ones() -> None:
    capped = running(10, cap=64, waiting=14)
    assert row(seen(capped), "in flight") == "100 oldest 1.0 s, at most 64, 14 wait for a slot"
    assert row(seen(running(10, waiting=14)), "in flight") == "100 oldest 1.0 s, 14 late"


@pytest.mark.parametrize(
    ("oldest_s", "age"), [(0.04, "0.0 s"), (62.3, "62.3 s"), (3723.0, "1:02:03")]
)
def test_the_age_of_the_oldest_request_is_shown(oldest_s: float, age: str) -> None:
    assert row(seen(running(10, oldest_s=oldest_s)), "in flight") == f"100 oldest {age}"
    assert row(seen(running(61.0, DONE)), "in flight") == "0"


def piling_up(until_s: float) -> list[Progress]:
    """100 requests a second, of which 50 are answered."""
    due = [(second / 4, round(25 * second)) for second in range(1, round(4 * until_s))]
    return [
        running(at_s, ended=number // 2, in_flight=number - number // 2) for at_s, number in due
    ]


def test_overload_is_said_and_never_dropped_before_the_numbers() -> None:
    lines = seen(*piling_up(40))
    assert any(line.startswith(OVERLOADED) for line in lines)
    assert any(line.startswith(OVERLOADED) for line in seen(*piling_up(40), width=60, height=6))
    assert not [line for line in seen(*MINUTE) if "OVERLOADED" in line]


def stands(*moments: Progress, settings: RunSettings = SETTINGS) -> list[str]:
    """The lines that say how the run stands."""
    lines = seen(*moments, settings=settings, width=200)
    return lines[2 : lines.index("")]


def test_the_first_lines_name_the_load_and_how_the_run_stands() -> None:
    load, bar, standing = seen(running(10), settings=SLO)[:3]
    assert load == "qwen3-8b, 100 req/s (Poisson), random 1024 in, 128 out, 6000 requests"
    assert bar.startswith("running")
    assert standing == "SLO MISSED so far (e2el_p50) | 900 ok, 0 failed | sent on time"


@pytest.mark.parametrize(
    ("settings", "load"),
    [
        (
            {"max_concurrency": 64, "duration": 90.0},
            "64 requests in flight, random 1024 in, 128 out, 1.5 min",
        ),
        ({"dataset_name": "sharegpt"}, "all requests at once, data set sharegpt, 6000 requests"),
        (
            {"ramp_up_strategy": "linear", "ramp_up_start_rps": 1.0, "ramp_up_end_rps": 40.0},
            "1 to 40 req/s, random 1024 in, 128 out, 6000 requests",
        ),
    ],
)
def test_the_load_is_what_the_settings_ask(settings: dict[str, object], load: str) -> None:
    moment = running(10, scheduled=0 if "duration" in settings else 6000)
    asked = RunSettings(base_url="http://127.0.0.1:8000", **settings)  # type: ignore[arg-type]
    assert seen(moment, settings=asked)[0] == load


def test_a_simulated_engine_is_named_first() -> None:
    assert seen(running(10), settings=RunSettings(engine="sim"))[0].startswith("SIMULATED ENGINE, ")


def test_what_is_worst_is_said_first() -> None:
    assert stands(running(10, failures={"timeout": 90})) == [
        "NOT OK: 90 of 990 failed | sent on time"
    ]
    assert stands(running(10, failures={"timeout": 9})) == ["9 of 909 failed | sent on time"]
    (overloaded,) = stands(*piling_up(40), settings=SETTINGS.replace(slo="e2el_p50<1s"))
    assert overloaded.startswith(f"{OVERLOADED} | SLO MISSED so far (e2el_p50) | ")
    assert stands(running(10), settings=SETTINGS.replace(slo="ttft_p99<100ms"))[0].startswith(
        "900 ok, 0 failed | SLO met so far, sure after 662 requests"
    )


SLO = SETTINGS.replace(slo="ttft_p50<100ms,e2el_p50<1s,error_rate<1%,ttft_p99<100ms")


def test_each_limit_of_the_slo_has_a_row() -> None:
    lines = seen(running(10), settings=SLO)
    assert row(lines, "SLO   ") == "so far limit"
    assert row(lines, "ttft_p50") == "40.9 ms <100ms met so far"
    assert row(lines, "e2el_p50") == "1309 ms <1s MISSED so far"
    assert row(lines, "error_rate") == "0.00% <1% met so far"
    assert row(lines, "ttft_p99") == "41.7 ms <100ms met so far, sure after 662 requests"
    failing = running(10, failures={"timeout": 900}, ok=0)
    assert row(seen(failing, settings=SLO), "ttft_p50") == "failed <100ms MISSED so far"


def test_an_slo_says_that_it_is_not_known_before_the_first_answer() -> None:
    lines = seen(Progress("running", 0.5, scheduled=1000, sending_s=10.0), settings=SLO)
    assert row(lines, "ttft_p50") == "n/a <100ms not known yet"


def test_a_run_with_too_few_requests_says_that_an_slo_will_not_be_sure() -> None:
    few = running(10, scheduled=112)
    limit = SETTINGS.replace(slo="ttft_p99<100ms")
    not_sure = "met so far, not sure: this run has 112 of 662 requests"
    assert stands(few, settings=limit)[0] == f"900 ok, 0 failed | SLO {not_sure} | sent on time"
    assert row(seen(few, settings=limit, width=120), "ttft_p99") == f"41.7 ms <100ms {not_sure}"


def test_value_close_to_its_limit_is_approximate() -> None:
    lines = seen(running(10), settings=SETTINGS.replace(slo="ttft_p50<40.5ms"))
    assert row(lines, "ttft_p50") == "~40.9 ms <40.5ms close to the limit"


def test_a_run_without_an_slo_has_no_row_of_it() -> None:
    assert not [line for line in seen(running(10)) if line.startswith("SLO")]


def test_a_wide_terminal_has_charts_over_time() -> None:
    def charts(width: int, height: int) -> list[str]:
        lines = seen(*MINUTE, width=width, height=height)
        (first,) = [number for number, line in enumerate(lines) if line.endswith("peak 100")] or [
            len(lines)
        ]
        return lines[first:]

    assert charts(118, 50) == []
    low = charts(119, 20)
    assert [line[:13] for line in low] == ["in flight    ", "TTFT over tim"]
    assert low[1].endswith("peak 40.9 ms")
    assert len(charts(159, 49)) == 2 * MAX_CHART_HEIGHT
    assert max(map(len, charts(159, 49))) < 159


def test_silent_streams_are_counted_with_the_one_that_is_silent_longest() -> None:
    shown = row(seen(running(90, silent={17: 12.4, 3: 20.0})), "silent streams")
    assert shown == "2 request 17, last token at 12 s"
    assert not [line for line in seen(running(90)) if "silent" in line]


def test_a_closed_loop_has_no_due_times() -> None:
    lines = seen(
        running(10, closed_loop=True, scheduled=0, sending_s=40.0),
        settings=RunSettings(max_concurrency=100),
    )
    assert not [line for line in lines if "due " in line and "from" not in line]
    assert row(lines, "running").endswith("25% 0:10 about 0:31 left")


@pytest.mark.parametrize(
    ("progress", "left"),
    [
        (running(30), "about 0:31 left"),  # by the schedule, and the last answer
        (running(30, waiting=500), "about 0:32 left"),  # more than can be sent: by what has ended
        (running(30, sending_s=None), "about 0:32 left"),  # sessions
        (running(0.25, sending_s=None, ended=0), ""),
        (running(3599.6, sending_s=7200.0), "about 1:00:02 left"),
    ],
)
def test_time_left_follows_the_schedule_while_it_decides(progress: Progress, left: str) -> None:
    assert row(seen(progress), "running").partition("about")[2] == left.partition("about")[2]


def test_gaps_are_between_tokens_where_those_are_told_apart() -> None:
    lines = seen(running(10, imputed_gaps=7, itl=sketch(5)))
    assert row(lines, "ITL (tokens)").startswith("5.")
    assert not [line for line in lines if line.startswith("ICL (chunks)")]


def test_latencies_say_from_when_they_are() -> None:
    assert row(seen(running(10), settings=RunSettings(latency_from="sent")), "TTFT from sent")


@pytest.mark.parametrize(
    ("differs", "said"),
    [
        ({"lag": sketch(*[0.1] * 98, 3, 3)}, "sent on time"),
        ({"lag": sketch(*[0.1] * 98, 6, 6)}, "SUSPECT: requests are sent 5.9 ms late (p99)"),
        ({"loop_stall": sketch(*[3] * 2000)}, "sent on time"),  # arrival times are the kernel's
    ],
)
def test_a_client_that_cannot_keep_up_is_told_by_the_limits_of_the_verdict(
    differs: dict[str, object], said: str
) -> None:
    assert seen(running(10, **differs))[2].split(" | ")[-1] == said


def test_only_reported_server_values_are_shown() -> None:
    assert row(seen(running(10, server={"running": 3})), "server") == "running 3"
    assert not [line for line in seen(running(10)) if line.startswith("server")]


def test_a_terminal_that_knows_no_more_is_given_ascii() -> None:
    assert "".join(seen(FAILING, ascii_only=True)).isascii()


# -- where there is little room


@pytest.mark.parametrize("width", range(1, 121, 7))
@pytest.mark.parametrize("height", [1, 2, 5, 14, 23])
def test_frame_is_never_larger_than_the_terminal(width: int, height: int) -> None:
    lines = seen(*MINUTE, FAILING, width=width, height=height)
    assert 1 <= len(lines) <= height
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", range(1, 121, 7))
def test_wide_characters_take_two_columns_of_it(width: int) -> None:
    wide = Progress("starting", 3.0, note="模型 加载中 " * 20)
    lines = seen(wide, width=width)
    assert max(map(display_width, lines)) <= width
    failing = running(37.25, failures={"状态" * 30: 3})
    assert max(map(display_width, seen(failing, width=width))) <= width


@pytest.mark.parametrize("width", range(30, 121, 3))
def test_a_number_is_shown_as_a_whole_or_not_at_all(width: int) -> None:
    whole = {word for line in seen(*MINUTE, FAILING, width=200) for word in line.split()}
    numbers = {
        word
        for line in seen(*MINUTE, FAILING, width=width)[2:-1]
        for word in line.split()
        if word[0].isdigit()
    }
    assert numbers <= whole


def test_the_lower_it_is_the_more_is_left_out_of_what_matters_less() -> None:
    def labels(height: int) -> list[str]:
        return [line[:15].strip() for line in seen(*MINUTE, FAILING, height=height)]

    assert "" in labels(24)
    assert labels(16) == [
        "qwen3-8b, 100 r",
        "running   ━━━━━",
        "3 of 3628 faile",
        "",
        "requests due",
        "requests sent",
        "requests ended",
        "output tokens",
        "in flight",
        "failed",
        "latency (ms)",
        "TTFT",
        "ICL (chunks)",
        "E2EL",
        "client",
        "server",
    ]
    assert labels(7) == [
        "running   ━━━━━",
        "3 of 3628 faile",
        "",
        "requests sent",
        "output tokens",
        "failed",
        "client",
    ]
    assert labels(1) == ["running   ━━━━━"]


def test_columns_stay_where_they_are_however_large_the_numbers_grow() -> None:
    grown = structs.replace(
        running(3600.0),
        scheduled=10**8,
        ended=10**7,
        in_flight=10**5,
        streamed_tokens=10**10,
        lag=sketch(9000),
    )
    small, large = seen(running(1.0)), seen(grown)
    for one, other in zip(small[4:], large[4:], strict=True):
        label = one[:15]
        assert other.startswith(label)
        if label.strip() not in (
            "client",
            "in flight",
            "requests ended",
            "requests due",
        ):  # these have remarks
            assert len(one) == len(other)


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({"request_rate": 2.5}, "asked 2.5/s"),
        ({"request_rate": 2.5, "dataset_name": "multi_turn"}, "asked 2.5 sessions/s"),
        (
            {"ramp_up_strategy": "linear", "ramp_up_start_rps": 1.0, "ramp_up_end_rps": 40.0},
            "asked 1 to 40/s",
        ),
        ({}, ""),
    ],
)
def test_the_rate_that_is_wanted_stands_beside_what_is_due(
    settings: dict[str, object], asked: str
) -> None:
    due = row(seen(running(10), settings=RunSettings(**settings)), "requests due")  # type: ignore[arg-type]
    assert due == f"100.0/s 100.0/s 1000 {asked}".strip()
