"""Errors carry a path, and are spelled where they are read."""

import pickle

import pytest

from loadgen.errors import (
    FLAGS,
    BadInput,
    Flags,
    Spelling,
    Unreachable,
    setting,
    spelled,
    within,
    written_as,
)


def refused() -> BadInput:
    return BadInput(setting.request_rate, "'{model}' is no rate", f"give {setting.max_concurrency}")


@pytest.mark.parametrize(
    ("spelling", "text"),
    [
        (Spelling(), "request_rate: '{model}' is no rate; give max_concurrency"),
        (FLAGS, "--request-rate: '{model}' is no rate; give --max-concurrency"),
        (
            Flags({"request_rate": "--rate", "max_concurrency": "--streams"}),
            "--rate: '{model}' is no rate; give --streams",
        ),
    ],
)
def test_an_error_names_settings_as_its_reader_writes_them(spelling: Spelling, text: str) -> None:
    with pytest.raises(BadInput) as caught, spelled(spelling):
        raise refused()
    assert str(caught.value) == text


def test_the_inner_border_spells_the_error() -> None:
    with pytest.raises(Unreachable) as caught, spelled(FLAGS), spelled(Flags({"base_url": "--to"})):
        raise Unreachable(f"refused; give {setting.base_url}")
    assert str(caught.value) == "refused; give --to"


def test_outer_levels_prefix_the_path() -> None:
    with pytest.raises(BadInput) as caught, spelled(FLAGS), within(setting.classes, "fast"):
        raise refused()
    assert caught.value.path == (setting.classes, "fast", setting.request_rate)
    assert caught.value.field == "--class: fast: --request-rate"


def test_an_error_names_where_a_setting_was_written() -> None:
    places = {setting.request_rate: ("--config", "run.yaml", "rate")}
    with pytest.raises(BadInput) as caught, spelled(FLAGS), written_as(places):
        raise refused()
    assert caught.value.field == "--config: run.yaml: rate"


def test_an_error_without_a_path_says_where_it_is_in_its_problem() -> None:
    assert str(BadInput((), "a.json is no result", "name another")) == (
        "a.json is no result; name another"
    )


def test_an_error_that_crosses_between_processes_is_spelled_where_it_arrives() -> None:
    with spelled(Spelling()):
        error = pickle.loads(pickle.dumps(refused()))
        assert error.field == "request_rate"
    with spelled(FLAGS):
        assert error.field == "--request-rate"
