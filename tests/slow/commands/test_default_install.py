"""Commands after `pip install .`: each works, or says in one line which packages it needs."""

import ast
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests.helpers.command_line import SHORT, TOKENIZER
from tests.helpers.default_install import installed_by_default, modules_of_others, several
from tests.helpers.imported_files import PAGES, STUDIES
from tests.helpers.source import lazy_packages, modules
from tests.helpers.study_files import as_yaml
from tests.lab.study.test_reproduce import SIMULATED

STUDY, PAGE = str(STUDIES / "qwen3-14b-h100.yaml"), str(PAGES / "qwen3-14b-h100.md")
OFFLINE = ["--base-url", "http://127.0.0.1:9"]
JOINT = {"name": "joint", "joint": {"max_seqs": {"log2": [16, 1024]}}, "sampler": "tpe"}
FEW = ["--num-prompts", "5", "--max-concurrency", "2", *SHORT, "--quiet"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a result, and a store of a study."""
    made = tmp_path_factory.mktemp("default")
    saved = [
        "--save-result",
        "--result-filename",
        "run.json",
        "--html",
        "run.html",
        "--records",
        "run.jsonl",
    ]
    other = ["--save-result", "--result-filename", "other.json"]
    commands = [
        ["run", "--engine", "sim", *FEW, *saved],
        ["run", "--engine", "sim", *FEW, *other],
        ["import", STUDY, PAGE, "--store", "theirs"],
    ]
    assert [code for code, _ in several(commands, made)] == [0, 0, 0]
    return made


def test_packages_of_extras_are_hidden() -> None:
    assert {"faker", "gguf", "optuna"} <= modules_of_others()
    assert {"numpy", "jinja2", "loadgen"}.isdisjoint(modules_of_others())


COMPLETE = [
    ["report", "run.json"],
    ["report", "run.jsonl"],
    ["report", "run.json", "--html", "again.html"],
    ["report", "run.jsonl", "--as", "vllm-0.33"],
    ["compare", "run.json", "other.json", "--html", "beside.html"],
    ["audit", "run.json"],
    ["dataset", "--num-prompts", "5"],
    ["tune", "plan", STUDY],
    ["tune", "status", "theirs"],
    ["tune", "export", "theirs"],
    ["tune", "report", "theirs"],
    ["tune", "schema"],
    ["engines"],
    ["serve", "sim", "--dry-run"],
]


def test_commands_need_no_further_package(folder: Path) -> None:
    ended = several(COMPLETE, folder)
    assert [words for words, (code, _) in zip(COMPLETE, ended, strict=True) if code] == [], ended


def test_a_study_runs_without_further_packages(folder: Path) -> None:
    budget = SIMULATED["budget"] | {"quiet_wait": 0}  # other tests run beside it
    twice = {"name": "twice", "decision": {"repeats": {"least": 2, "most": 2}}, "budget": budget}
    (folder / "study.yaml").write_text(as_yaml(**SIMULATED | twice))
    ((code, errors),) = several([["tune", "run", "study.yaml", "--no-live"]], folder)
    assert code == 0, errors
    assert (folder / "twice.store").is_dir()


ABSENT = [
    ["import", "none.yaml", PAGE],
    ["import", STUDY, "none.md"],
    ["tune", "run", "none.yaml"],
    ["tune", "status", "none"],
    ["tune", "report", "none"],
    ["tune", "export", "none"],
]


def test_what_is_not_there_is_one_line(folder: Path) -> None:
    for words, (code, errors) in zip(ABSENT, several(ABSENT, folder), strict=True):
        assert code == 2, words
        (line,) = errors.splitlines()
        assert line.startswith(f"loadgen {words[0]}: ")


# The command, the field that needs a package, and the package.
MISSING = [
    (["tune", "run", "joint.yaml"], "sampler tpe", "optuna"),
    (
        ["dataset", "--dataset-name", "hf", "--dataset-path", "rows.parquet"],
        "--dataset-path",
        "pyarrow",
    ),
    (["dataset", "--dataset-rule", "guidellm-0.5"], "--dataset-rule", "faker"),
    (["dataset", "--tokenizer", "model.gguf"], "--tokenizer", "gguf"),
    (
        ["run", *OFFLINE, "--tokenizer", TOKENIZER, "--ray", "auto"],
        "--ray",
        "ray",
    ),
    (["run", "--engine", "llamacpp", "--model", "./model.gguf"], "--model", "gguf"),
]


def test_a_missing_package_is_one_line(folder: Path) -> None:
    (folder / "model.gguf").touch()
    (folder / "rows.parquet").touch()
    (folder / "joint.yaml").write_text(as_yaml(stages=[JOINT]))
    ended = several([words for words, _, _ in MISSING], folder)
    for (words, field, package), (code, errors) in zip(MISSING, ended, strict=True):
        assert code == 2, errors
        (line,) = errors.splitlines()
        assert line.startswith(f"loadgen {words[0]}: {field}: ")
        assert f"; pip install {package}" in line


def test_other_packages_are_imported_only_where_needed() -> None:
    owners = metadata.packages_distributions()
    ours = installed_by_default()
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [str(node.module)]
            )
            for top in (
                {each.partition(".")[0] for each in names} - {"loadgen"} - sys.stdlib_module_names
            ):
                by_default = ours & {
                    owner.lower().replace("_", "-") for owner in owners.get(top, [])
                }
                assert by_default or top in lazy_packages(), f"{name} imports {top}"
