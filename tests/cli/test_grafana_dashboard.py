"""The Grafana dashboard: what Grafana's own library reads of it, and that its queries name
metrics that there are.
"""

import json
import re
from itertools import combinations
from typing import Any

import pytest
from grafana_foundation_sdk.cog import encoder, plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from loadgen.cli.main import dispatch
from loadgen.cli.runs.metrics_endpoint import DASHBOARD, Metrics
from loadgen.config.settings import RunSettings
from loadgen.runner.server import Server
from tests.helpers.live_text import running

DATA: dict[str, Any] = json.loads(DASHBOARD.read_text())
EXPRESSIONS = [target["expr"] for panel in DATA["panels"] for target in panel["targets"]]


def missing(wanted: Any, found: Any, where: str = "") -> list[str]:
    """The places at which `found` lacks a part of `wanted`."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return [where]
        return [
            place
            for name, value in wanted.items()
            for place in (
                missing(value, found[name], f"{where}/{name}")
                if name in found
                else [f"{where}/{name}"]
            )
        ]
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(wanted) != len(found):
            return [where]
        return [
            place
            for number, pair in enumerate(zip(wanted, found, strict=True))
            for place in missing(*pair, f"{where}/{number}")
        ]
    return [] if wanted == found else [where]


def exposed() -> dict[str, set[str]]:
    """The samples that a run exposes, and the labels of each."""
    metrics = Metrics()
    metrics.identify(Server(RunSettings(label="x", max_concurrency=8), "a/model"))
    metrics.update(
        running(10, failures={"timeout": 1}, server={"running": 1, "waiting": 1, "kv_usage": 0.5})
    )
    registry = CollectorRegistry()
    registry.register(metrics)
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


def test_the_dashboard_is_printed_with_indents(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["report", "--grafana"]) == 0
    assert capsys.readouterr().out == f"{json.dumps(DATA, indent=2)}\n"
    assert dispatch(["report", "r.json", "--grafana"]) == 2


def test_the_library_of_grafana_knows_every_field() -> None:
    plugins.register_default_plugins()
    read = json.loads(json.dumps(Dashboard.from_json(DATA), cls=encoder.JSONEncoder))
    assert missing(DATA, read) == []


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = DATA["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    assert max(place["x"] + place["w"] for place in places) == 24
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_queries_name_metrics_and_labels_that_there_are(expression: str) -> None:
    samples = exposed()
    named = set(re.findall(r"\bloadgen_\w+", expression))
    assert named
    assert named <= samples.keys()
    for name, matchers in re.findall(r"(loadgen_\w+)\{(.*?)\}", expression):
        # Those are given by Prometheus.
        labels = set(re.findall(r"(\w+)(?:=|!=)", matchers)) - {"job", "instance"}
        assert labels <= samples[name]


def test_every_query_is_of_the_chosen_runs() -> None:
    assert all('instance=~"$instance"' in expression for expression in EXPRESSIONS)
    assert all(
        "loadgen_run_info{" in expression and 'label=~"$label"' in expression
        for expression in EXPRESSIONS
    )
    names = [variable["name"] for variable in DATA["templating"]["list"]]
    assert names == ["datasource", "model", "label", "instance"]


def test_the_headline_metrics_have_panels() -> None:
    named = {
        name for expression in EXPRESSIONS for name in re.findall(r"\bloadgen_\w+", expression)
    }
    for wanted in (
        "in_flight",
        "oldest_request_seconds",
        "requests_total",
        "ttft_seconds_bucket",
        "tpot_seconds_bucket",
    ):
        assert f"loadgen_{wanted}" in named
