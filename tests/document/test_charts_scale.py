"""Scales: positions of values, and round ticks."""

import pytest

from loadgen.document.charts.scale import (
    MAX_TICKS,
    Linear,
    Log,
    Names,
    Nines,
    Scale,
    fitting_scale,
    short,
)


def words(scale: Scale) -> list[str]:
    return [text for _, text in scale.ticks()]


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (0.0, ["0", "0.5", "1"]),
        (1.0, ["0", "0.5", "1"]),
        (49.0, ["0", "20", "40", "60"]),
        (97.0, ["0", "50", "100"]),
        (103.0, ["0", "40", "80", "120"]),
        (1234.0, ["0", "500", "1k", "1.5k"]),
        (3e6, ["0", "1M", "2M", "3M"]),
    ],
)
def test_an_even_axis_goes_from_0_to_a_tick_above_all_values(most: float, ticks: list[str]) -> None:
    assert words(Linear.over("", [None, most / 3, most])) == ticks


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([20.0, 90.0], ["20", "50", "100"]),
        ([20.0, 300.0], ["50", "100", "500"]),
        ([0.05, 9000.0], ["1", "100", "10k"]),
        ([7.0], ["5", "10"]),
        ([5.0], ["5", "10"]),
        ([0.0, 1.0], ["0.001", "0.01", "0.1", "1"]),
        ([], ["1", "2"]),
    ],
)
def test_a_logarithmic_axis_goes_from_tick_to_tick_around_all_values(
    values: list[float], ticks: list[str]
) -> None:
    assert words(Log.over("ms", [*values, None])) == ticks


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([20.0, 90.0], Linear),
        ([20.0, 110.0], Log),
        ([0.0, 110.0], Linear),
        ([None, 3.0], Linear),
        ([], Linear),
    ],
)
def test_values_that_differ_much_have_a_logarithmic_axis(
    values: list[float | None], kind: type
) -> None:
    assert type(fitting_scale("ms", values)) is kind


def test_percentiles_stand_by_their_nines() -> None:
    scale = Nines(4.0)
    assert words(scale) == ["50", "90", "99", "99.99"]
    assert [round(scale.share(value), 3) for value, _ in scale.ticks()] == [0.075, 0.25, 0.5, 1.0]
    assert words(Nines(3.0)) == ["50", "90", "99", "99.9"]


@pytest.mark.parametrize("low", [0.0, 0.3, 7.0, 123.0])
@pytest.mark.parametrize("span", [1e-4, 0.9, 2.0, 3.7, 6.1, 9.99, 64.3, 1e5, 3e9])
def test_an_axis_of_numbers_has_two_to_four_ticks(low: float, span: float) -> None:
    ends = low, low + span
    axes = [Linear("", *ends), Linear.over("", ends), Linear.around("", ends), Log.over("", ends)]
    for axis in axes:
        assert 2 <= len(words(axis)) <= MAX_TICKS, axis
    assert len(words(Nines(min(1 + span, 7.0)))) <= MAX_TICKS


@pytest.mark.parametrize(
    ("place", "said"),
    [(0.0, "p0"), (0.30103, "p50"), (1.0, "p90"), (2.0, "p99"), (2.30103, "p99.5"), (3.0, "p99.9")],
)
def test_a_place_among_percentiles_is_named_as_exactly_as_it_stands(
    place: float, said: str
) -> None:
    assert Nines(4.0).written(place) == said


def test_every_doubling_is_as_wide() -> None:
    scale = Log("ms", 1.0, 8.0)
    assert [round(scale.share(value), 6) for value in (1, 2, 4, 8)] == [
        0.0,
        0.333333,
        0.666667,
        1.0,
    ]


def test_value_beyond_the_axis_is_at_its_end() -> None:
    assert (Linear("", 0.0, 10.0).share(11), Linear("", 0.0, 10.0).share(-1)) == (1.0, 0.0)
    assert (Log("", 1.0, 10.0).share(11), Log("", 1.0, 10.0).share(0)) == (1.0, 0.0)


def test_a_value_is_written_in_four_digits_with_its_unit() -> None:
    assert Linear("req/s", 0.0, 1.0).written(98.765) == "98.77 req/s"
    assert Log("ms", 1.0, 2.0).written(12345.6) == "12346 ms"
    assert Linear("", 0.0, 1.0).written(3.0) == "3"


@pytest.mark.parametrize(
    ("value", "said"), [(0.05, "0.05"), (999.0, "999"), (1500.0, "1.5k"), (2e6, "2M"), (4e9, "4G")]
)
def test_ticks_are_short(value: float, said: str) -> None:
    assert short(value) == said


def test_names_stand_below_each_other_in_the_middle_of_their_rows() -> None:
    scale = Names(("a", "b"))
    assert [(scale.share(value), name) for value, name in scale.ticks()] == [
        (0.75, "a"),
        (0.25, "b"),
    ]
    assert scale.written(1.2) == "b"


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [([-0.4, 0.4], -0.6, 0.6), ([33.3], 20, 50), ([5000, 6250], 4500, 6500)],
)
def test_an_axis_around_values_has_room_at_both_ends(
    values: list[float], low: float, high: float
) -> None:
    scale = Linear.around("", values)
    assert scale.low < min(values) <= max(values) < scale.high
    assert low <= scale.low + 1e-9
    assert scale.high <= high + 1e-9
