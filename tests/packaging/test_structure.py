"""The structure of the code: who may import whom, where heavy packages are imported, how long a file may be."""

import ast
import graphlib
import re
from functools import cache
from pathlib import Path

import pytest

from tests.source import FOLDERS, ROOT, modules

# A module imports from its own layer and those below it; the lowest comes first.
LAYERS = [
    {
        "arguments",
        "beside",
        "blocks",
        "bounds",
        "buckets",
        "caching",
        "child",
        "client",
        "clock",
        "contact",
        "data_settings",
        "deltas",
        "emit",
        "errors",
        "exposition",
        "failures",
        "garbage",
        "gpus",
        "growing",
        "heading",
        "heard",
        "histogram",
        "idle_connections",
        "logs",
        "machine",
        "messages",
        "metric_names",
        "node_facts",
        "noise",
        "options",
        "outcomes",
        "output_settings",
        "packages",
        "pages",
        "placement",
        "plugins",
        "private",
        "progress",
        "prompts",
        "redaction",
        "scale_settings",
        "scrapes",
        "scratch",
        "search",
        "shard",
        "sketch",
        "stats",
        "stripe",
        "stream",
        "student",
        "telemetry",
        "terminal",
        "timeline",
        "timeouts",
    }
    | {"ending", "hlog", "pool", "recording", "schedule", "settings", "slo", "snapshot", "sources"}
    | {"spare_connections", "whole"}
    | {"wire", "words"}
    | {"written", "yaml_loader"},
    {
        "capture",
        "confidence",
        "cost",
        "digest",
        "evidence",
        "heartbeat",
        "http",
        "pacer",
        "pieces",
        "records",
        "requests",
        "scraper",
        "scraping",
        "streamed",
        "tally",
        "target",
        "throughput",
    }
    | {"overhead", "sessions"},
    {"backlog"},
    {"checks", "datasets", "profiles", "provenance", "recorder", "recorders", "report", "transport", "workloads"}
    | {"transport_errors"}
    | {"audit", "balancer"},
    {"demands"},
    {"lead", "load", "preparing", "rehearsal"},
    {"left", "measurement", "measurer", "measurers", "node", "nodes", "part", "preparer", "workers"},
    {"launched", "server", "targets", "worker"},
    {"results"},
    {"levels"},
    {"comparing", "runner", "testing", "tools", "watched"},
    {"doctor", "gpustack", "studies"},
    {"imports"},
    {"cli", "__main__"},
    {"pytest"},
]
# The one part of the core that knows engines: it tests them, and nothing of the core imports it.
TESTS_ENGINES = "testing.engine_conformance"
# Outside its own package an engine sees only these.
SEEN_BY_ENGINES = {"arguments", "clock", "emit", "errors", "gpus", "private", "settings", "terminal", "whole"}
# Slow to import, so each is imported where it is used and nowhere else.
HOMES = {
    "aiohttp": {"http", "scraper", "transport", "transport_errors", "worker"},
    "faker": {"datasets.rules.guidellm_0_5"},
    "datasets": {"datasets.hf"},
    "hdrh": {"histogram", "hlog"},
    "huggingface_hub": {"datasets.hf", "datasets.tokenizer"},
    "jinja2": {"datasets.template", "pages.writing"},
    "matplotlib": {"studies.reports.charts"},
    "prometheus_client": {"cli.prometheus", "exposition", "scraper"},
    "pytest": {"pytest", "testing.engine_conformance", "testing.fixtures"},
    "pydantic": {"profiles", "written", "studies.objective", "studies.reading", "studies.stages", "studies.strict"}
    | {"studies.study"},
    "pydantic_core": {"studies.reading", "studies.strict"},
    "pytest_asyncio": {"testing.fixtures"},
    "optuna": {"studies.drawing"},
    "rich": {"cli.live", "cli.study_view"},
    "gguf": {"datasets.gguf_file"},
    "tokenizers": {"datasets.gguf_file", "datasets.tokenizer"},
    "transformers": {"datasets.tokenizer"},
    "uvloop": {"engines.sim.server", "runner", "testing.listening", "worker"},
    "yaml": {"cli.config", "engines.trtllm", "profiles", "studies.reading", "yaml_loader"},
}
MOST_LINES = 400
# Engines as data and functions; only finding a version may start a program, for a moment.
PURE = {"command", "crash", "engine", "knobs", "listing", "readback", "speculation", "spelling", "table", "ways"}
PURE |= {"external", "llamacpp", "mindie", "mindie_config", "mindie_settings"}
PURE |= {"sglang", "transformers", "trtllm", "vllm"}


@cache
def imported(path: Path) -> frozenset[str]:
    """The full names of what a module imports, anywhere in it, type-checking blocks aside."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


@cache
def ours(path: Path) -> frozenset[str]:
    """The project's modules that a module imports, without the leading `loadgen.`."""
    known = modules().keys() | {"wire", "histogram", "tally", "emit"}
    found = set()
    for name in imported(path):
        if not name.startswith("loadgen."):
            continue
        parts = name.split(".")[1:]
        # The longest name that is a module: what follows it is something that the module defines.
        ends = [n for n in range(1, len(parts) + 1) if ".".join(parts[:n]) in known]
        found |= {".".join(parts[: max(ends)])} if ends else set()
    return frozenset(found)


def layer(name: str) -> int:
    return next(number for number, names in enumerate(LAYERS) if name.split(".")[0] in names)


CORE = sorted(name for name in modules() if not name.startswith(("engines", "bench")))


@pytest.mark.parametrize("name", CORE)
def test_a_module_of_the_core_imports_only_from_its_layer_and_those_below(name: str) -> None:
    for other in ours(modules()[name]):
        if name == TESTS_ENGINES and other.startswith("engines"):
            continue
        assert other != TESTS_ENGINES, f"{name} imports {other}"
        assert not other.startswith(("engines", "bench")), f"{name} imports {other}"
        assert layer(other) <= layer(name), f"{name} imports {other}"


def test_the_design_names_every_module_once_and_below_those_that_it_knows() -> None:
    rows = [line.split("|")[1] for line in (ROOT / "loadgen/DESIGN.md").read_text().splitlines() if line[:3] == "| `"]
    named = [(name, number) for number, row in enumerate(rows) for name in re.findall(r"`(\w+)`", row)]
    row = dict(named)
    compiled = {path.stem for ending in ("pyx", "pxd", "pxi") for path in (ROOT / "loadgen").glob(f"*.{ending}")}
    assert sorted(name for name, _ in named) == sorted({name.split(".")[0] for name in CORE} - {"__main__"} | compiled)
    for name in CORE:
        for other in ours(modules()[name]) if name not in ("__main__", TESTS_ENGINES) else ():
            assert row[other.split(".")[0]] <= row[name.split(".")[0]], f"{name} imports {other}"


def test_the_design_of_the_engines_names_every_module_once() -> None:
    engines, named = ROOT / "engines", list[Path]()
    rows = [line.split("|")[1] for line in (engines / "DESIGN.md").read_text().splitlines() if line[:3] == "| `"]
    for row in rows:
        names = [Path(name) for name in re.findall(r"`([\w/]+\.py)`", row)]
        named += [names[0].with_name(name.name) for name in names]  # a row's folder is that of its first
    assert sorted(named) == sorted(
        path.relative_to(engines) for path in engines.rglob("*.py") if not path.name.startswith("__")
    )


def test_the_design_says_of_every_folder_of_tests_what_it_holds() -> None:
    rows = [line.split("|")[1] for line in (ROOT / "DESIGN.md").read_text().splitlines() if line[:3] == "| `"]
    named = [name for row in rows for name in re.findall(r"`([\w/]+)`", row)]
    folders = [path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and not path.name.startswith("_")]
    assert sorted(named) == sorted([*folders, "accuracy/virtual"])


@pytest.mark.parametrize("package", ["checks", "comparing", "doctor", "pages", "studies", "tools"])
def test_the_design_of_a_package_names_every_module_once_and_below_those_that_it_knows(package: str) -> None:
    lines = (ROOT / "loadgen" / package / "DESIGN.md").read_text().splitlines()
    rows = [line.split("|")[1] for line in lines if line[:3] == "| `"]
    named = [(name, number) for number, text in enumerate(rows) for name in re.findall(r"`(\w+)`", text)]
    row = dict(named)
    parts = {name: name.split(".")[1] for name in modules() if name.startswith(f"{package}.")}
    assert sorted(name for name, _ in named) == sorted({*parts.values()})
    for name, part in parts.items():
        for other in ours(modules()[name]) & parts.keys():
            assert row[parts[other]] <= row[part], f"{name} imports {other}"


@pytest.mark.parametrize("name", sorted(name for name in modules() if name.startswith("engines")))
def test_an_engine_sees_only_the_little_it_needs_of_the_core(name: str) -> None:
    for other in ours(modules()[name]):
        assert other.startswith("engines") or other in SEEN_BY_ENGINES, f"{name} imports {other}"


def test_an_engine_starts_nothing_and_asks_nobody() -> None:
    for name in PURE:
        path = modules()[f"engines.{name}"]
        assert not {full.split(".")[0] for full in imported(path)} & {"subprocess", "socket", "asyncio"}, name
        assert {other.removeprefix("engines.") for other in ours(path)} <= PURE | {"errors", "engines", "versions"}, (
            name
        )


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {name: ours(path) - {name} for name, path in modules().items()}
    # A package's __init__ gathers what its modules define; they do not import it back.
    graphlib.TopologicalSorter(graph).prepare()


def test_heavy_packages_are_imported_in_their_places_alone() -> None:
    for name, path in modules().items():
        heavy = {full.split(".")[0] for full in imported(path)} & HOMES.keys()
        for package in heavy:
            assert name in HOMES[package], f"{name} imports {package}"


def test_no_file_grows_beyond_what_can_be_read_in_one_go() -> None:
    for folder in FOLDERS.values():
        for path in (path for ending in ("py", "pyx", "pxd", "pxi") for path in folder.rglob(f"*.{ending}")):
            name = str(path.relative_to(ROOT))
            lines = len(path.read_text().splitlines())
            assert lines <= MOST_LINES, f"{name} has {lines} lines"


def test_every_target_of_the_makefile_that_is_no_file_has_a_rule() -> None:
    text = (ROOT / "Makefile").read_text()
    (names,) = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    for name in names.split():
        assert re.search(rf"^{name}:", text, re.MULTILINE), name


def test_no_document_is_left_as_a_merge_that_nobody_ended() -> None:
    places = [ROOT.glob("*.md"), *((ROOT / name).rglob("*.md") for name in ("docs", "loadgen", "engines", "bench"))]
    for path in (path for place in places for path in place):
        assert not re.search(r"^(<{7}|>{7}) ", path.read_text(), re.MULTILINE), path


def test_what_is_left_to_the_long_tests_exists() -> None:
    (text,) = re.findall(r"^LEFT_TO_ALL := ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    paths = re.findall(r"tests/[\w/*.]+", text)
    assert paths
    assert [path for path in paths if not list(ROOT.glob(path))] == []
