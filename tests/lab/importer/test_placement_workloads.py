"""The workload of a study that a published result belongs to."""

from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.lab.audit.finding import Place
from loadgen.lab.audit.number import Number
from loadgen.lab.audit.published import Published
from loadgen.lab.importer.entries import Unplaced
from loadgen.lab.importer.placement import find_workload
from loadgen.lab.study.spec.workloads import loads
from tests.helpers.study_files import study

RANDOM: dict[str, Any] = {"dataset_name": "random", "num_prompts": 100}
WORKLOADS: dict[str, Any] = {
    "short": RANDOM | {"random_input_len": 128, "random_output_len": 4},
    "talk": {"workload": "sharegpt", "dataset_path": "share.json"},
    "talk of four": {"workload": "sharegpt-bs4", "dataset_path": "share.json"},
    "steady": RANDOM
    | {
        "random_input_len": 1000,
        "random_output_len": 200,
        "request_rate": 1.0,
        "max_concurrency": 32,
    },
    "burst": RANDOM | {"random_input_len": 1000, "random_output_len": 200},
}


def workloads(**named: Any) -> dict[str, RunSettings]:
    """The workloads of a study; those above, or others in their place."""
    chosen = named or WORKLOADS
    return loads(study(workloads=chosen, objective={"workload": next(iter(chosen))}))


def told(ok: float, input_tokens: float, output_tokens: float, **others: float) -> Published:
    """A block with these numbers; the others are cap, failed, rate and duration_s."""
    numbers = {"ok": ok, "input_tokens": input_tokens, "output_tokens": output_tokens} | others
    return Published(
        {name: Number.exact(value) for name, value in numbers.items()}, {}, Place("page.md", 1)
    )


def of_json(result: Published, **data: Any) -> Published:
    """The same result, read from a file of JSON."""
    return Published(result.numbers, {}, result.place, data=data)


def unplaced(
    among: dict[str, RunSettings], result: Published, sent: int | None = None, near: str = ""
) -> str:
    """Why a result is of none of the workloads."""
    with pytest.raises(Unplaced) as caught:
        find_workload(among, result, sent, near)
    return str(caught.value)


@pytest.mark.parametrize(
    ("result", "near", "name"),
    [
        (told(100, 12_800, 400), "", "short"),
        (told(100, 12_770, 400), "", "short"),  # cut to fewer tokens than asked
        (told(100, 17_000, 400), "", "short"),  # with those of a chat template
        (told(100, 12_800, 300), "", "short"),  # replies that ended early
        (told(1000, 217_393, 201_648), "", "talk"),
        (told(1000, 217_393, 201_648, cap=4), "", "talk of four"),
        (told(100, 100_000, 20_000), "burst", "burst"),
    ],
)
def test_a_result_is_of_the_workload_with_its_requests_tokens_and_cap(
    result: Published, near: str, name: str
) -> None:
    assert find_workload(workloads(), result, None, near) == name


# -- requests: succeeded and failed together are the workload's


def test_requests_that_failed_count() -> None:
    result = told(51, 51 * 128, 51 * 4)
    assert find_workload(workloads(), result, 100, "") == "short"
    assert unplaced(workloads(), result, 51).startswith("no workload of the study is 51 requests")


@pytest.mark.parametrize(
    ("sent", "placed"), [(1000, True), (984, True), (900, True), (899, False), (1001, False)]
)
def test_at_most_a_tenth_of_the_requests_may_be_missing(sent: int, placed: bool) -> None:
    talk = workloads(talk=WORKLOADS["talk"])
    result = told(sent, sent * 217, sent * 201 + 1)
    if placed:
        assert find_workload(talk, result, None, "ShareGPT") == "talk"
    else:
        assert "talk has 1000 requests" in unplaced(talk, result, near="talk")


def test_workload_of_a_duration_may_have_any_number_of_requests() -> None:
    timed = {
        "dataset_name": "random",
        "random_input_len": 128,
        "random_output_len": 4,
        "duration": 60,
    }
    assert (
        find_workload(
            workloads(timed=timed | {"request_rate": 1.0}), told(57, 57 * 128, 57 * 4), None, ""
        )
        == "timed"
    )


# -- caps: equal, or not binding


def test_a_capped_result_is_not_of_a_workload_without_a_cap() -> None:
    talk = workloads(talk=WORKLOADS["talk"])
    assert unplaced(talk, told(1000, 217_393, 201_648, cap=4)) == (
        "no workload of the study is 1000 requests, at most 4 in flight, 217393 tokens in, 201648 "
        "out: talk has no cap on those in flight"
    )


@pytest.mark.parametrize("cap", [{}, {"cap": 8}])
def test_a_result_with_another_cap_is_not_of_a_capped_workload(cap: dict[str, float]) -> None:
    four = workloads(four=WORKLOADS["talk of four"])
    assert unplaced(four, told(1000, 217_393, 201_648, **cap)).endswith(
        ": four has at most 4 in flight"
    )


def test_a_cap_that_no_request_reaches_is_none() -> None:
    assert find_workload(workloads(), told(100, 12_800, 400, cap=100), None, "") == "short"
    wide = WORKLOADS["short"] | {"max_concurrency": 512}
    assert find_workload(workloads(wide=wide), told(100, 12_800, 400), None, "") == "wide"


def test_cap_of_a_load_that_kept_its_request_rate_held_nothing_back() -> None:
    # Tools print the highest number in flight as the cap.
    kept = told(100, 100_000, 20_000, cap=9, duration_s=101)
    assert find_workload(workloads(), kept, None, "") == "steady"
    late = told(100, 100_000, 20_000, cap=9, duration_s=140)
    assert "steady has at most 32 in flight" in unplaced(workloads(), late)


def test_file_without_a_cap_does_not_tell_it() -> None:
    result = told(1000, 217_393, 201_648)
    four = workloads(four=WORKLOADS["talk of four"])
    assert find_workload(four, of_json(result, completed=1000), None, "") == "four"
    assert unplaced(four, of_json(result, completed=1000, max_concurrency=None))


# -- rates and lengths


def test_a_run_that_was_faster_than_the_request_rate_is_not_of_it() -> None:
    assert (
        find_workload(workloads(), told(100, 100_000, 20_000, duration_s=20), None, "") == "burst"
    )


def test_request_rate_that_is_printed_is_the_workloads() -> None:
    limited = told(1000, 217_393, 201_648, rate=10)
    assert "talk has no request rate" in unplaced(workloads(), limited)
    ten = WORKLOADS["talk"] | {"request_rate": 10.0}
    assert find_workload(workloads(ten=ten), limited, None, "") == "ten"
    assert unplaced(workloads(ten=ten), told(1000, 217_393, 201_648, rate=5)).endswith(
        ": ten has 10 req/s"
    )


def test_replies_of_one_length_are_not_those_of_conversations() -> None:
    fixed = told(1000, 1_024_000, 128_000)
    assert "talk has replies of different lengths" in unplaced(workloads(), fixed)
    cut = WORKLOADS["talk"] | {"sharegpt_output_len": 128}
    assert find_workload(workloads(cut=cut), fixed, None, "") == "cut"


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (told(100, 64_000, 400), "short has prompts of 128 tokens"),
        (told(100, 12_800, 800), "short has replies of 4 tokens"),
        (told(0, 0, 0), "short has 100 requests"),
    ],
)
def test_a_result_of_no_workload_is_told_what_each_has(result: Published, why: str) -> None:
    assert f": {why}, talk has 1000 requests" in unplaced(workloads(), result)


def test_a_result_that_fits_two_workloads_is_not_placed() -> None:
    both = workloads(one=WORKLOADS["burst"], two=WORKLOADS["burst"] | {"seed": 7})
    assert (
        unplaced(both, told(100, 100_000, 20_000))
        == "100 requests, 100000 tokens in, 20000 out can be one or two"
    )
