"""The drafted study of a published page: a plan accepts it, and its page's results are placed."""

from pathlib import Path

import pytest

from loadgen.cli.main import dispatch
from loadgen.errors import BadInput
from loadgen.lab.importer.entries import Source
from loadgen.lab.importer.importer import Importer, store
from loadgen.lab.importer.placement import Arms
from loadgen.lab.importer.study_draft import draft
from loadgen.lab.study.plan.planner import plan
from loadgen.lab.study.spec import study_file
from loadgen.lab.study.spec.stages import Choice
from loadgen.lab.study.spec.study import Study
from tests.helpers.audited_pages import block, fence
from tests.helpers.imported_files import PAGES
from tests.helpers.thinning import thinned

NAMES = sorted(path.stem for path in PAGES.glob("[a-z]*.md"))
# Second results of one command, which no store has.
TWICE = {"glm-5.2-h200": 1, "qwen3-8b-h100-latency": 3, "qwen3.5-35b-a3b-h200": 1}


def drafted(tmp_path: Path, path: Path) -> Study:
    (tmp_path / "study.yaml").write_text(draft(str(path), path.read_text()))
    return study_file.read(tmp_path / "study.yaml").study


@pytest.mark.parametrize("name", thinned(NAMES, 4))
def test_the_results_of_the_page_are_placed(name: str, tmp_path: Path) -> None:
    page = PAGES / f"{name}.md"
    drafted(tmp_path, page)
    file = study_file.read(tmp_path / "study.yaml")
    with store(tmp_path / "store", file) as into:
        importer = Importer(into, Arms(plan(file.study)), file.study)
        summary = importer.add(Source.read(str(page)))
    lines = [line for line in summary.lines if "not placed" in line]
    assert len(lines) == summary.unplaced == TWICE.get(name, 0)
    assert all("published results are not averaged" in line for line in lines)
    assert len(summary.imported) >= 12


def test_the_draft_has_models_versions_loads_and_stages(tmp_path: Path) -> None:
    study = drafted(tmp_path, PAGES / "qwen3-14b-h100.md")
    assert study.models == {
        "qwen3-14b": "Qwen/Qwen3-14B",
        "qwen3-14b-fp8": "Qwen/Qwen3-14B-FP8",
    }
    assert study.hardware.name == "A single NVIDIA H100 SXM GPU"
    assert study.engines["trtllm"].version == "1.2.0rc1"
    assert study.workloads["Medium prompt"] == {
        "dataset_name": "random",
        "random_input_len": 2000,
        "random_output_len": 100,
        "num_prompts": 500,
    }
    assert study.objective.workload == "sharegpt"
    assert study.stages[0].name == "Choosing the Inference Engine"
    # The page recommends FP8, and not the best backend of the last stage.
    expected = [stage.expect for stage in study.stages if isinstance(stage, Choice)]
    assert expected == [["SGLang"], ["FP8"], []]


def page_of(tmp_path: Path, *commands: str) -> Path:
    parts = [f"{fence(command, 'bash')}\n{fence(block())}\n" for command in commands]
    path = tmp_path / "page.md"
    path.write_text("# Foo-7B\n\n" + "\n".join(parts))
    return path


def test_an_arm_resets_what_the_baseline_sets_and_it_does_not(tmp_path: Path) -> None:
    path = page_of(tmp_path, "vllm serve a/Foo-7B --max-model-len 32768", "vllm serve a/Foo-7B")
    study = drafted(tmp_path, path)
    assert study.baseline.knobs == {"context_len": 32768}
    assert [arm.knobs for arm in study.stages[0].choice.values()] == [{"context_len": None}]  # type: ignore[union-attr]


def test_a_command_that_is_no_change_of_the_baseline_is_left_out(tmp_path: Path) -> None:
    path = page_of(tmp_path, "vllm serve a/Foo-7B --speed fast", "vllm serve a/Foo-7B")
    drafted(tmp_path, path)
    text = (tmp_path / "study.yaml").read_text()
    assert "# CHECK: left out, since it lacks a flag of the baseline: vllm serve a/Foo-7B" in text


def test_a_page_without_serving_commands_has_no_study() -> None:
    with pytest.raises(BadInput, match=r"x\.md has no result with a serving command"):
        draft("x.md", fence(block()))


def test_the_command_writes_the_study_and_says_what_to_do_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = str(PAGES / "qwen3-14b-h100.md")
    make = ["import", "--make-study", "s.yaml", page]
    assert dispatch(make) == 0
    out = capsys.readouterr().out
    assert out.startswith("Wrote: s.yaml; complete its ")
    assert f"loadgen import s.yaml {page} places" in out
    assert dispatch(["tune", "plan", "s.yaml"]) == 0
    assert dispatch(["import", "s.yaml", page]) == 0
    answer = "IMPORTED: 15 results into qwen3-14b-h100.published"
    assert f"\n{answer}\nnext: read what the results show: " in capsys.readouterr().out
    assert dispatch(make) == 2
    assert "--make-study: s.yaml exists; name a new file" in capsys.readouterr().err
    assert dispatch([*make, page]) == 2
    assert "--make-study: 2 pages are given; name one page" in capsys.readouterr().err
    assert dispatch(["import", "s.yaml"]) == 2
    assert "no FILE is given; name a page or a result after the study" in capsys.readouterr().err
