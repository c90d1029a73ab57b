"""Every panel of the Grafana dashboard has data, in a real Prometheus that scrapes a real run."""

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from bench.engines.environments import CannotBeMade
from loadgen.cli.runs.metrics_endpoint import DASHBOARD
from loadgen.version import __version__
from tests.helpers.command_line import TOKENIZER, served, start
from tests.qa.dashboard.prometheus import Database, prometheus, scraping

DATA: dict[str, Any] = json.loads(DASHBOARD.read_text())
TARGETS = [
    pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")
    for panel in DATA["panels"]
    for target in panel["targets"]
]
# 20 requests/s, of which those with long answers time out; 40 s, so that windows of 15 s are full.
LOAD = ["--rate", "20", "--duration", "40", "--random-input-len", "64", "--random-output-len", "32"]
FAILING = [
    "--random-range-ratio",
    "0.9",
    "--timeout",
    "0.4",
    "--max-error-rate",
    "1",
    "--max-concurrency",
    "500",
]
SCRAPED_S = 20.0
CHOSEN = {"model": ".*", "label": "nightly", "instance": ".*"}


@dataclass(frozen=True)
class Scraped:
    """A run that goes on, and the Prometheus that scrapes it."""

    run: "subprocess.Popen[str]"
    database: Database


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    try:
        program = prometheus()
    except CannotBeMade as error:
        pytest.skip(str(error))
    folder, port = tmp_path_factory.mktemp("prometheus"), free_port()
    with (
        scraping(program, [f"127.0.0.1:{port}"], free_port(), folder) as database,
        served("--step-base-ms", "10") as (url, _),
    ):
        flags = [
            "--base-url",
            url,
            "--tokenizer",
            TOKENIZER,
            "--prometheus",
            str(port),
            "--label",
            "nightly",
            "--json",
        ]
        run = start("run", *flags, *LOAD, *FAILING, cwd=folder)
        try:
            wait_for(database, f"min(loadgen_elapsed_seconds) > {SCRAPED_S}")
            yield Scraped(run, database)
        finally:
            run.kill()
            run.communicate()


def wait_for(database: Database, expression: str) -> list[dict[str, Any]]:
    """Wait until an expression has a value."""
    deadline_s = time.monotonic() + 90
    while not (found := database.query(expression)):
        assert time.monotonic() < deadline_s, f"nothing for {expression}"
        time.sleep(0.25)
    return found


def filled_in(expression: str) -> str:
    """The expression with the values of Grafana's variables."""
    filled = expression.replace("$__rate_interval", "15s")
    for name, value in CHOSEN.items():
        filled = filled.replace(f"${name}", value)
    assert "$" not in filled
    return filled


@pytest.mark.parametrize("expression", TARGETS)
def test_every_query_has_data(scraped: Scraped, expression: str) -> None:
    found = scraped.database.query(filled_in(expression))
    assert found
    for series in found:
        assert series["value"][1] != "NaN"


def test_series_carry_the_identity_of_the_run(scraped: Scraped) -> None:
    (one,) = scraped.database.query(filled_in(DATA["panels"][4]["targets"][0]["expr"]))
    assert {"label": "nightly", "rate": "20", "max_concurrency": "500"}.items() <= one[
        "metric"
    ].items()
    (info,) = scraped.database.query("loadgen_run_info")
    assert info["metric"]["version"] == __version__
    assert info["metric"]["target"].startswith("http://127.0.0.1:")


def test_another_label_has_no_data(scraped: Scraped) -> None:
    expression = DATA["panels"][4]["targets"][0]["expr"]
    assert not scraped.database.query(filled_in(expression.replace("$label", "weekly")))


def test_variables_offer_what_is_scraped(scraped: Scraped) -> None:
    for variable in DATA["templating"]["list"][1:]:
        match = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
        assert match is not None
        values = scraped.database.get(
            f"label/{match[2]}/values", **{"match[]": filled_in(match[1])}
        )
        assert len(values) == 1


def test_the_last_values_are_those_of_the_result(scraped: Scraped) -> None:
    out, err = scraped.run.communicate(timeout=90)
    assert scraped.run.returncode == 0, err
    result = json.loads(out)
    found = scraped.database.query('max_over_time(loadgen_requests_total{outcome="ok"}[5m])')
    assert [float(series["value"][1]) for series in found] == [result["completed"]]
    assert result["failed"] > 0
    quantile = "histogram_quantile(0.5, loadgen_ttft_seconds_bucket)"
    values = scraped.database.query(f"last_over_time(({quantile})[1m:1s])")
    assert float(values[0]["value"][1]) * 1e3 == pytest.approx(
        result["loadgen"]["latency_ms"]["ttft_due"]["p50"], rel=0.2
    )
