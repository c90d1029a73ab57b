"""The schema of a result: each key is described, fixed keys are closed, and every kind fits."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from loadgen.checks import examine
from loadgen.cli.main import dispatch
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.metrics import parted_recorder
from loadgen.metrics.records.file import RecordWriter
from loadgen.metrics.records.trailer import WorkerReport
from loadgen.metrics.server.series import PromHistogram
from loadgen.metrics.server.telemetry import Gpu, Telemetry
from loadgen.report.result import RunResult
from loadgen.report.result.schema import text
from loadgen.runner.run_result import from_records
from loadgen.util.accelerators import QUANTITIES
from tests.helpers import run_facts, saved_json
from tests.helpers.result_schema import SCHEMA, problems
from tests.helpers.run_facts import START, failed, steady, unsent
from tests.helpers.server_scrapes import telemetry

RUN = [steady(i, due=i * 100, ttft=20 + i, gap=10, n=5) for i in range(24)]
BAD = [*RUN, failed(24), failed(25, Outcome.STATUS), unsent(26), failed(27, Outcome.CANCELLED)]
SAID = telemetry(
    {
        "requests": 5,
        "generation_tokens": 70,
        "prefix_queries": 0,
        "prefix_hits": 0,
        "ttft": PromHistogram(0, 0.0, {}),
    },
    {
        "requests": 9,
        "generation_tokens": 78,
        "ttft": PromHistogram(4, 0.072, {0.01: 0, 0.02: 3, float("inf"): 4}),
    },
    {"running": 1, "waiting": 0, "kv_usage": 0.25},
)
GPU = Gpu("H100", [-0.5, 0.5], {quantity: [None, 1.0] for quantity in QUANTITIES})
TARGETS = RunSettings(base_url=("http://a:1", "http://b:1"), save_detailed=True)
ASKED = RunSettings(
    slo="ttft_p99<1s,error_rate<1%", goodput=("ttft:25",), metadata=("gpu=H100", "n=2")
)
CLASSES = RunSettings(
    classes=("a:priority=1,slo=ttft_p99<1s,goodput=ttft:9", "b:model=x"), save_detailed=True
)
TIMELINE: dict[str, Any] = {
    "width_s": 0.25,
    **{name: [3, 0] for name in ("sent", "ended", "failed", "in_flight", "output_tokens")},
    "ttft_ms": {"p50": [20.0, None], "p99": [21.5, None]},
    "icl_ms": {
        "p50": [10.0, None],
        "p99": [10.0, None],
        "edges": [8.0, 10.0, 12.0],
        "counts": [[1, 2], [0, 0]],
    },
}
# May be missing: what only some runs have, what a server tells of its own accord, and what is made
# elsewhere.
OPTIONAL = {"run", "brief", "example", "engine", "numbers", "prompts", "shared_input"}


def made(records: Any, settings: RunSettings | None = None, **options: Any) -> dict[str, Any]:
    run_data = run_facts.run_data(records, settings, **options)
    return RunResult.of(run_data, examine(run_data)).to_dict()


def of_targets() -> dict[str, Any]:
    recorder = parted_recorder.recorder_for(TARGETS, START, 4)
    for record in (steady(0), steady(1), failed(2), failed(3, Outcome.TRUNCATED)):
        record.target = record.index % 2
        recorder.add(record)
    return made(
        recorder.snapshot(),
        TARGETS,
        engine={"targets": [{"base_url": "http://a:1"}], "version": None},
    )


def of_classes() -> dict[str, Any]:
    recorder = parted_recorder.recorder_for(CLASSES, START, 4)
    for record in (steady(0), steady(1), failed(2), failed(3, Outcome.TRUNCATED)):
        record.class_number = record.index % 2
        recorder.add(record)
    return made(recorder.snapshot(), CLASSES)


def of_workers() -> dict[str, Any]:
    schedule = run_facts.due_at(*(i * 100 for i in range(24)))
    shards = [
        run_facts.shard(schedule, 0),
        WorkerReport(number=1, lost="was killed by signal 9", host="10.0.0.2"),
    ]
    return made(RUN, schedule=schedule, shards=shards)


def of_series(kind: str) -> dict[str, Any]:
    data = saved_json.begun(kind, "rate", "ttft_p99<100ms", "due")
    for level in (1.0, 2.0, float("inf")):
        run = run_facts.measured(BAD)
        data["points"].append(
            saved_json.point(
                level, made(run, ASKED), run, limits="ttft_p99<100ms", saved=["r.json"]
            )
        )
    if kind == "search":
        data["found"] = {"level": 2.0, "fails": None, "end": "floor", "last": 2.0}
    saved_json.conclude(data)
    return data


KINDS = {
    "whole": lambda: made(RUN),
    "with details, limits and metadata": lambda: made(
        RUN, ASKED.replace(metric_percentiles="25,99.9"), detailed=True
    ),
    "nothing measured": lambda: made([]),
    "failures": lambda: made(BAD),
    "nothing but failures": lambda: made([failed(0), unsent(1)]),
    "partial": lambda: made(RUN, scheduled=40, partial="interrupted"),
    "several targets": of_targets,
    "classes": of_classes,
    "several workers": of_workers,
    "scraped": lambda: made(RUN, telemetry=Telemetry(SAID.sources, (GPU,))),
    "captured": lambda: made(
        RUN, client={"capture": {"responses": 24, "left_out": 0, "error": None}}
    ),
    "with a timeline": lambda: with_timeline(TIMELINE),
    "without one, since nothing was sent": lambda: with_timeline(None),
    "sweep": lambda: of_series("sweep"),
    "search": lambda: of_series("search"),
}


def with_timeline(timeline: dict[str, Any] | None) -> dict[str, Any]:
    result = made(RUN)
    result["loadgen"]["timeline"] = timeline
    return result


def objects(
    node: Any, where: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every object in a schema that has properties, and where it stands."""
    if isinstance(node, dict):
        if isinstance(node.get("properties"), dict):
            yield where, node
        for name, value in node.items():
            yield from objects(value, (*where, name))
    if isinstance(node, list):
        for value in node:
            yield from objects(value, where)


@pytest.mark.integration
def test_schema_is_valid() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_of_every_kind_fits(kind: str) -> None:
    assert problems(KINDS[kind]()) == []


def test_a_result_that_was_made_of_records_fits(tmp_path: Path) -> None:
    settings = RunSettings(request_rate=100.0, num_prompts=24).checked()
    schedule = run_facts.Schedule.from_settings(settings, 0)
    with RecordWriter.optional(tmp_path / "r.jsonl") as writer:
        assert writer is not None
        writer.begin(run_facts.heading(settings, schedule), START, 24, [])
        for record in RUN[:9]:
            writer.write(record)
    assert problems(from_records(tmp_path / "r.jsonl").data) == []


def test_every_key_is_described() -> None:
    for where, node in objects(SCHEMA):
        for name, value in node["properties"].items():
            assert "$ref" in value or value.get("description", "")[-1:] in (".", ":"), (
                *where,
                name,
            )
    assert all(value["description"] for value in SCHEMA["$defs"].values())


def test_objects_with_fixed_keys_are_closed_and_require_them() -> None:
    for where, node in objects(SCHEMA):
        named = where[-1] if where else "result"
        if named not in OPTIONAL:
            assert node.get("additionalProperties") is False or "unevaluatedProperties" in node, (
                where
            )
            left_out = node["properties"].keys() - set(node.get("required", ()))
            assert left_out <= {"timeline", "trace_key"}, where


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["scraped", "with a timeline", "several targets", "several workers", "search"]
)
def test_an_unknown_key_is_refused_wherever_keys_are_fixed(kind: str) -> None:
    """What is free: the settings, which `loadgen run --help` describes, and what a data set says
    of itself.
    """
    result = json.loads(json.dumps(KINDS[kind]()))
    free = {("loadgen", "provenance", part) for part in ("settings", "asked", "prompts")}
    for where in list(places(result)):
        if any(where[: len(part)] == part for part in free) and "server_tokens" not in where:
            continue
        strange = copy.deepcopy(result)
        at: Any = strange
        for step in where:
            at = at[step]
        at["unheard_of"] = {"of": 1}
        assert problems(strange), where


def places(node: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is an object; of alike items of a list, in the first."""
    if isinstance(node, dict):
        yield where
        for name, value in node.items():
            if name not in ("histograms",) or where != ("loadgen",):
                yield from places(value, (*where, name))
            else:
                first = next(iter(value))
                yield from ((*where, name), (*where, name, first))
    elif isinstance(node, list):
        for number, value in enumerate(node[:1]):
            yield from places(value, (*where, number))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("loadgen", "verdict"), "GOOD"),
        (("loadgen", "schema"), 2),
        (("mean_ttft_ms",), "20"),
        (("p99_ttft_ms",), "20"),
        (("completed",), 1.5),
        (("gpu",), 8),
        (("loadgen", "timeline"), TIMELINE | {"sent": [0.5]}),
        (
            ("loadgen", "timeline"),
            {name: value for name, value in TIMELINE.items() if name != "icl_ms"},
        ),
    ],
)
def test_a_value_of_another_kind_is_refused(path: tuple[str, ...], value: Any) -> None:
    result = made(RUN)
    at = result
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    assert problems(result)


def test_a_key_that_is_missing_is_told() -> None:
    result = made(RUN)
    del result["loadgen"]["rates"]["good_share"]
    assert problems(result) == ["loadgen/rates: 'good_share' is a required property"]


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["report", "--schema"]) == 0
    assert capsys.readouterr().out == text()


def test_schema_is_not_printed_beside_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["report", "--schema", "r.json"]) == 2
    assert (
        capsys.readouterr().err
        == "loadgen report: --schema: takes no file, and r.json is given; leave one of the two "
        "out\n"
    )
