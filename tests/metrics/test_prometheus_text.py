"""Samples of Prometheus' text format are those that Prometheus' own library reads."""

import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from loadgen.metrics.server.prometheus_text import Sample, samples
from tests.helpers.source import ROOT

DATA = ROOT / "tests" / "data"
CAPTURED = orjson.loads((DATA / "captures" / "vllm_metrics.jsonl").read_bytes().splitlines()[1])["reads"][1:]
RECORDED = {
    "vllm": "".join(text for _, text in CAPTURED),
    "llama.cpp": (DATA / "metrics" / "llamacpp.txt").read_text(),
}
NAMES = st.sampled_from(["m", "vllm:requests_total", ":_9", "http_seconds_bucket"])
LABELS = st.dictionaries(
    st.sampled_from(["le", "a", "B_2"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.text('\\"n\n{},=# ', max_size=6),
)
NUMBERS = st.one_of(
    st.floats().map(str),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["+Inf", "-Inf", "NaN", "Nan", "inf", "1e+06", "1.E-3", ".5", "+1"]),
)
EXEMPLARS = st.sampled_from(["", ' # {trace_id="a"} 0.5', ' # {trace_id="b",x="}"} 1e3 1700000000.5', " # {} 1"])


def by_library(text: str) -> list[Sample]:
    """The samples as the library reads them, without types: it would add _total to names of counters."""
    families = text_string_to_metric_families(re.sub("^# TYPE.*", "", text, flags=re.MULTILINE))
    return [(one.name, one.labels, float(one.value)) for family in families for one in family.samples]


def same(ours: list[Sample], theirs: list[Sample]) -> bool:
    """Whether samples are the same; NaN is the same as NaN."""
    return repr(ours) == repr(theirs)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") + '"'


@st.composite
def sample_lines(draw: Any) -> str:
    """A line with a sample, with the blanks, the comma and the timestamp that the format permits."""
    labels = draw(LABELS)
    comma, blank, gap, last = (
        draw(st.sampled_from(pair)) for pair in ((",", " , "), ("", " "), (" ", "  "), ("", ","))
    )
    inside = comma.join(f"{label}{blank}={blank}{quoted(value)}" for label, value in labels.items())
    block = f"{blank}{{{blank}{inside}{last}{blank}}}" if labels else draw(st.sampled_from(["", "{}"]))
    timestamp = draw(st.sampled_from(["", "1700000000123", "-1", "1700000000.5"]))
    return f"{blank}{draw(NAMES)}{block}{gap}{draw(NUMBERS)}{gap}{timestamp}{draw(EXEMPLARS)}{blank}"


COMMENTS = st.sampled_from(
    ["", " ", "#", "# EOF", "# HELP m Text, \\\\ and \\n.", "# HELP m", "# TYPE m counter", "# UNIT m s", "# any"]
)
TEXTS = st.builds(
    lambda lines, end: end.join([*lines, ""]),
    st.lists(sample_lines() | COMMENTS, max_size=4),
    st.sampled_from(["\n", "\r\n"]),
)


@given(TEXTS)
def test_samples_are_those_of_the_library(text: str) -> None:
    assert same(samples(text), by_library(text))


@pytest.mark.parametrize("server", RECORDED)
def test_samples_of_recorded_servers_are_those_of_the_library(server: str) -> None:
    ours = samples(RECORDED[server])
    assert same(ours, by_library(RECORDED[server]))
    assert len(ours) == len(re.findall("^[a-z]", RECORDED[server], re.MULTILINE))


def test_blanks_may_be_tabs() -> None:
    assert samples('\tm\t{a="b"}\t1\t2\nm\t3\n') == [("m", {"a": "b"}, 1.0), ("m", {}, 3.0)]


def test_labels_are_unescaped() -> None:
    assert samples(r'm{a="\\n\n\"\t"} 1') == [("m", {"a": '\\n\n"\\t'}, 1.0)]


def test_openmetrics_is_read_without_its_exemplars_and_timestamps() -> None:
    text = """\
# TYPE x histogram
# UNIT x seconds
x_bucket{le="1.0"} 3 # {trace_id="a b"} 0.5 1700000000.5
x_count 3 1700000000.5
# EOF
"""
    assert samples(text) == [("x_bucket", {"le": "1.0"}, 3.0), ("x_count", {}, 3.0)]


@pytest.mark.parametrize(
    "line",
    [
        "name",
        "name many",
        "name 1_000",
        "name 1 later",
        "1name 1",
        'name{a="b} 1',
        "name{a=b} 1",
        "name{a} 1",
        'name{a="b" c="d"} 1',
        'name{a="b"',
        'name{a="b"}',
        '{a="b"} 1',
        "<html>",
    ],
)
def test_a_line_that_is_no_sample_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(line))):
        samples(f"# HELP name\nname 1\n{line}\nname 2\n")
    with pytest.raises(ValueError):  # noqa: PT011 - the library's says little
        by_library(line)


def test_long_malformed_lines_are_refused_at_once() -> None:
    for line in (
        "m " + "1" * 200_000 + "x",
        'm{a="' + "\\" * 200_001,
        "m{" + 'a="b",' * 50_000 + "} x",
        "m" + " " * 200_000,
    ):
        with pytest.raises(ValueError, match="no sample"):
            samples(line + "\n")
