"""Result files: read back and printed the same, written completely, and without secrets."""

import contextlib
import os
import resource
from pathlib import Path

import orjson
import pytest
from hdrh.histogram import HdrHistogram

from loadgen.config.output_check import check_writable, files_to_overwrite
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.report import ci_summary, load, to_json
from loadgen.report.files import result_path
from tests.helpers import saved_json
from tests.helpers.run_facts import MS, failed, measured, result, steady
from tests.helpers.saved_json import render, save

SECRET = "hunter2"


def a_run(settings, count=3):
    snapshot = measured(
        [*(steady(i, due=i * 10, ttft=20 + i) for i in range(count)), failed(count)]
    )
    return result(snapshot, settings), snapshot


@pytest.fixture
def settings(tmp_path):
    return RunSettings(save_result=True, result_dir=str(tmp_path), result_filename="r.json")


# -- saved and read again


def test_a_saved_result_is_printed_again_as_it_was(settings):
    data, snapshot = a_run(
        settings.replace(slo="ttft_p99<1s", goodput=("ttft:1",), latency_from="sent")
    )
    (path,) = save(settings, data, snapshot).paths
    (loaded,) = load(path)
    assert loaded == data
    assert render(loaded) == render(data)


def test_the_json_printed_to_stdout_can_be_read_again_as_well(tmp_path):
    data, _ = a_run(RunSettings())
    path = tmp_path / "out.json"
    path.write_text(to_json(data) + "\n")
    assert load(str(path)) == [data]


def test_summaries_are_saved_beside_the_result(settings, tmp_path):
    both = settings.replace(
        markdown=str(tmp_path / "r.md"), junit=str(tmp_path / "r.xml"), slo="ttft_p99<1s"
    )
    data, snapshot = a_run(both)
    saved = save(both, data, snapshot)
    assert [Path(path).name for path in saved.paths] == ["r.json", "r.md", "r.xml"]
    assert (tmp_path / "r.md").read_text() == ci_summary.markdown(saved_json.result(data))
    assert 'name="ttft_p99&lt;1s"' in (tmp_path / "r.xml").read_text()


@pytest.mark.parametrize("name", ["markdown", "junit"])
@pytest.mark.parametrize("path", ["none/file", ".", "-", "r.json"])
def test_a_summary_that_could_not_be_written_is_refused_first(
    name, path, settings, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput) as refused:
        check_writable(settings.replace(result_dir=None, **{name: path}))
    assert refused.value.field == f"--{name}"


def test_saving_replaces_what_was_there(settings):
    save(settings, *a_run(settings, count=1))
    (path,) = save(settings, *a_run(settings, count=5)).paths
    assert [r["completed"] for r in load(path)] == [5]


def test_runs_of_one_second_have_files_of_their_own(settings):
    data, snapshot = a_run(settings := settings.replace(result_filename=None))
    paths = [Path(save(settings, data, snapshot).paths[0]) for _ in range(3)]
    assert [path.stem.removeprefix(paths[0].stem) for path in paths] == ["", "-2", "-3"]


def test_appending_gives_one_object_a_line(settings):
    appending = settings.replace(append_result=True)
    for count in (1, 2, 3):
        (path,) = save(appending, *a_run(settings, count=count)).paths
    with open(path, "rb") as file:
        assert [orjson.loads(line)["completed"] for line in file] == [1, 2, 3]
    assert [r["completed"] for r in load(path)] == [1, 2, 3]


def test_a_saved_result_may_be_appended_to(settings):
    save(settings, *a_run(settings, count=1))
    (path,) = save(settings.replace(append_result=True), *a_run(settings, count=2)).paths
    assert [r["completed"] for r in load(path)] == [1, 2]


@pytest.mark.parametrize("append", [False, True])
def test_a_result_that_holds_answers_is_for_its_owner_alone(settings, tmp_path, append):
    (tmp_path / "r.json").touch(0o644)
    for detailed, mode in ((False, 0o644), (True, 0o600)):
        asked = settings.replace(
            result_filename="r.json", save_detailed=detailed, append_result=append
        )
        (path,) = save(asked, *a_run(asked)).paths
        assert Path(path).stat().st_mode & 0o777 == mode


@contextlib.contextmanager
def room_for(size):
    """No file can grow beyond so many bytes: the kernel takes what fits of a write, as on a disk
    that is full.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_failed_append_leaves_the_file_unchanged(settings, tmp_path):
    appending = settings.replace(append_result=True)
    save(appending, *a_run(settings, count=1))
    before = (tmp_path / "r.json").read_bytes()
    with room_for(len(before) + 100):
        saved = save(appending, *a_run(settings, count=2))
    assert saved.paths == []
    assert saved.errors == [
        f"--append-result {tmp_path / 'r.json'} could not be saved: File too large"
    ]
    assert (tmp_path / "r.json").read_bytes() == before


def test_a_file_that_has_no_room_is_named_and_the_others_are_saved(settings, tmp_path):
    asked = settings.replace(hlog=str(tmp_path / "none" / "x.hlog"), html=str(tmp_path / "r.html"))
    saved = save(asked, *a_run(asked))
    assert saved.paths == [str(tmp_path / "r.json"), asked.html]
    assert saved.errors == [f"--hlog {asked.hlog} could not be saved: No such file or directory"]


@pytest.mark.parametrize("name", ["records", "capture"])
def test_files_incomplete_during_the_run_are_reported_as_lost(tmp_path, name):
    asked = RunSettings(**{name: str(tmp_path / "x")})
    data, snapshot = a_run(asked)
    data["loadgen"]["client"] |= {
        "records_error": "full",
        "capture": {"responses": 1, "left_out": 0, "error": "full"},
    }
    saved = save(asked, data, snapshot)
    assert (saved.paths, saved.errors) == ([], [f"--{name} {tmp_path / 'x'} is not complete: full"])


def test_the_line_that_is_no_result_is_named(settings, tmp_path):
    path = tmp_path / "r.json"
    for count in (1, 2):
        save(settings.replace(append_result=True), *a_run(settings, count=count))
    with open(path, "a") as file:
        file.write('{"half":')
    save(settings.replace(append_result=True), *a_run(settings, count=3))
    with pytest.raises(BadInput, match=r"r\.json: line 3 is not a loadgen result"):
        load(str(path))


def test_no_other_file_is_left_beside_the_result(settings, tmp_path):
    save(settings, *a_run(settings))
    assert os.listdir(tmp_path) == ["r.json"]


@pytest.mark.parametrize("option", ["save_result", "append_result", "save_detailed"])
def test_options_that_keep_a_result_write_one(tmp_path, option):
    asked = RunSettings(result_dir=str(tmp_path), result_filename="r.json", **{option: True})
    assert save(asked, *a_run(asked)).paths == [str(tmp_path / "r.json")]


def test_result_is_not_written_unless_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert save(RunSettings(), *a_run(RunSettings())).paths == []
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "openai-infqps-tiny-20250102-030405.json"),
        ({"request_rate": 10.0}, "openai-10.0qps-tiny-20250102-030405.json"),
        ({"request_rate": 10}, "openai-10.0qps-tiny-20250102-030405.json"),
        (
            {"request_rate": 0.5, "max_concurrency": 4, "backend": "openai-chat"},
            "openai-chat-0.5qps-concurrency4-tiny-20250102-030405.json",
        ),
        (
            {"ramp_up_strategy": "linear", "ramp_up_start_rps": 1.0, "ramp_up_end_rps": 10.0},
            "openai-ramp-up-linear-1.0qps-10.0qps-tiny-20250102-030405.json",
        ),
        ({"result_filename": "mine.json", "request_rate": 3.0}, "mine.json"),
    ],
)
def test_a_result_is_named_as_vllm_names_it_unless_a_name_is_given(tmp_path, options, name):
    asked = RunSettings(result_dir=str(tmp_path), **options)
    assert (
        result_path(asked, saved_json.result(result([steady()], asked)).numbers) == tmp_path / name
    )


def test_long_label_is_cut_in_the_name_of_the_file(tmp_path: Path) -> None:
    asked = RunSettings(
        request_rate=2.0, result_dir=str(tmp_path), label="\N{GREEK SMALL LETTER PI}" * 200
    )
    path = result_path(asked, saved_json.result(result([steady()], asked)).numbers)
    assert path.name.startswith("\N{GREEK SMALL LETTER PI}" * 40 + "-2.0qps-")
    path.touch()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n",
        "{",
        "[]",
        "[1]",
        "{}",
        "3",
        "null",
        '{"loadgen": {}}',
        '{"loadgen": {"schema": 2}}',
        '{"loadgen": 1}',
        "{}\n{}",
    ],
)
def test_a_file_that_is_no_result_is_refused(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(BadInput) as caught:
        load(str(path))
    assert str(path) in caught.value.problem
    assert "\n" not in str(caught.value)


def test_a_result_cut_off_is_refused(settings):
    (path,) = save(settings, *a_run(settings)).paths
    os.truncate(path, os.path.getsize(path) // 2)
    with pytest.raises(BadInput):
        load(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(BadInput, match="No such file"):
        load(str(tmp_path / "none.json"))


# -- histograms


def test_histograms_that_have_values_are_written_as_an_hdrhistogram_log(tmp_path):
    asked = RunSettings(hlog=str(tmp_path / "h.hlog"))
    assert save(asked, *a_run(asked)).paths == [asked.hlog]
    lines = [
        line for line in (tmp_path / "h.hlog").read_text().splitlines() if line.startswith("Tag=")
    ]
    by_tag = {line.split(",")[0].removeprefix("Tag="): line.rsplit(",", 1)[1] for line in lines}
    assert {"ttft_due", "ttft_sent", "e2el_due", "icl", "lag"} <= by_tag.keys()
    assert "gc_pause" not in by_tag
    assert HdrHistogram.decode(by_tag["ttft_due"]).get_value_at_percentile(100) == pytest.approx(
        22 * MS, rel=1e-3
    )


def test_the_records_file_is_named_among_what_was_saved(tmp_path):
    asked = RunSettings(records=str(tmp_path / "r.jsonl"))
    assert save(asked, *a_run(asked)).paths == [asked.records]


# -- before anything is sent


@pytest.mark.parametrize("name", ["records", "hlog"])
def test_writable_files_are_accepted_without_a_trace(tmp_path, name):
    check_writable(RunSettings(**{name: str(tmp_path / "x")}))
    assert os.listdir(tmp_path) == []


def test_the_folder_of_results_is_made_however_deep_before_anything_is_sent(tmp_path):
    asked = RunSettings(save_result=True, result_dir=str(tmp_path / "a" / "b"))
    check_writable(asked)
    assert os.listdir(tmp_path / "a" / "b") == []
    (path,) = save(asked, *a_run(asked)).paths
    assert load(path)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("records", "none/x"),
        ("hlog", "none/x"),
        ("records", "."),
        ("hlog", "."),
        ("result_dir", "file/x"),
    ],
)
def test_files_that_could_not_be_written_at_the_end_are_refused_at_the_start(tmp_path, name, path):
    (tmp_path / "file").touch()
    with pytest.raises(BadInput) as caught:
        check_writable(RunSettings(**{name: str(tmp_path / path)}))
    assert caught.value.field == f"--{name.replace('_', '-')}"


@pytest.mark.parametrize("name", ["sub/x.json", "file/x.json", "."])
def test_result_name_that_cannot_be_written_is_refused_early(settings, tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be written") as caught:
        check_writable(settings.replace(result_filename=name))
    assert caught.value.field == "--result-filename"


@pytest.mark.parametrize("name", ["result_filename", "records", "hlog", "capture", "html"])
def test_a_dash_is_no_file(name):
    with pytest.raises(BadInput, match="- is not a file name") as caught:
        check_writable(RunSettings(save_result=True, **{name: "-"}))
    assert caught.value.field == f"--{name.replace('_', '-')}"
    assert ("--json" in caught.value.remedy) is (name == "result_filename")


def test_a_device_is_written_as_it_is(settings):
    check_writable(settings.replace(result_filename="/dev/stdout", records="/dev/null"))


def test_a_relative_path_is_in_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_writable(RunSettings(records="r.jsonl", hlog="h.hlog", result_dir="results"))


def test_files_that_hold_something_are_told_of_before_they_are_overwritten(settings, tmp_path):
    asked = settings.replace(records=str(tmp_path / "r.jsonl"), hlog=str(tmp_path / "r.hlog"))
    for name in ("r.json", "r.jsonl"):
        (tmp_path / name).write_text("of an earlier run")
    (tmp_path / "r.hlog").touch()  # of nothing nothing is lost
    assert sorted(files_to_overwrite(asked)) == [
        str(tmp_path / "r.json"),
        str(tmp_path / "r.jsonl"),
    ]
    assert files_to_overwrite(asked.replace(append_result=True)) == [str(tmp_path / "r.jsonl")]
    assert files_to_overwrite(settings.replace(save_result=False)) == []


# -- secrets


def test_saved_and_printed_results_hold_no_secret(settings):
    secretive = settings.replace(
        api_key=SECRET,
        header=(f"X-Key={SECRET}",),
        base_url=f"http://me:{SECRET}@a:1",
        save_detailed=True,
        hlog=None,
    )
    data, snapshot = a_run(secretive)
    (path,) = save(secretive, data, snapshot).paths
    with open(path) as file:
        text = file.read()
    for shown in (text, to_json(data), render(data), repr(data)):
        assert SECRET not in shown
    assert "X-Key=(given)" in text
