"""The pytest plugin in a project's own tests, run by pytest in a separate process."""

import json
from pathlib import Path

import pytest

from loadgen.pytest_plugin import file_name
from loadgen.testing.process import Process, started
from tests.helpers.command_line import TOKENIZER

pytest_plugins = ["pytester"]

LOAD = f"""
import loadgen
LOAD = loadgen.RunSettings(backend="openai-chat", tokenizer={TOKENIZER!r}, random_input_len=8, random_output_len=2,
                           request_rate=200, num_prompts=20)
"""  # noqa: E501
COSTS = """
import sys
def test_nothing_was_imported():
    assert "loadgen.pytest_plugin" in sys.modules
    loaded = {name for name in sys.modules if name.split(".")[0] in ("loadgen", "numpy", "aiohttp", "uvloop")}
    assert loaded == {"loadgen", "loadgen.pytest_plugin", "loadgen.version"}
"""  # noqa: E501


class Project:
    """A project with one file of tests."""

    def __init__(self, pytester: pytest.Pytester, url: str) -> None:
        self.pytester, self.url = pytester, url

    def tests(self, text: str, *flags: str, url: str | None = None) -> pytest.RunResult:
        """What pytest makes of tests that may use LOAD, against the server."""
        self.pytester.makepyfile(test_it=LOAD + text)
        server = ["--loadgen-base-url", self.url if url is None else url] if url != "" else []
        return self.pytester.runpytest_subprocess("-p", "no:cacheprovider", *server, *flags)


@pytest.fixture
def project(pytester: pytest.Pytester, metronome: Process) -> Project:
    return Project(pytester, metronome.url)


def said(done: pytest.RunResult) -> str:
    return "\n".join(done.outlines)


# -- what passes


def test_a_run_is_measured_and_its_result_returned(project: Project) -> None:
    done = project.tests("""
def test_it(loadgen_run):
    result = loadgen_run(LOAD, num_prompts=10)
    assert result.snapshot.ok == 10
    result.assert_slo("ttft_p99<10s,error_rate<1%")
""")
    done.assert_outcomes(passed=1)


def test_fields_alone_will_do(project: Project) -> None:
    done = project.tests("""
def test_it(loadgen_run):
    fields = dict(backend="openai-chat", tokenizer=LOAD.tokenizer, random_input_len=8, random_output_len=2)
    assert loadgen_run(request_rate=100, num_prompts=5, slo="error_rate<1%", **fields).snapshot.ok == 5
""")  # noqa: E501
    done.assert_outcomes(passed=1)


def test_coroutine_test_measures_in_its_own_loop(project: Project) -> None:
    done = project.tests("""
import pytest
from loadgen.testing.faulty import serving

@pytest.mark.asyncio
async def test_it(loadgen_run_async):
    async with serving() as server:
        result = await loadgen_run_async(LOAD, base_url=server.url, preflight=False)
        assert server.requests == result.snapshot.ok == 20
""")
    done.assert_outcomes(passed=1)


def test_prompts_may_be_the_tests_own(project: Project) -> None:
    done = project.tests("""
class Mine:
    def prompts(self, count):
        return (loadgen.Prompt(f"question {number}", 2, 2, f"mine/{number}") for number in range(count))
    def provenance(self):
        return {"name": "mine"}

def test_it(loadgen_run):
    result = loadgen_run(LOAD, dataset=Mine())
    assert result.data["loadgen"]["provenance"]["prompts"]["name"] == "mine"
""")  # noqa: E501
    done.assert_outcomes(passed=1)


# -- what fails


def test_missed_limit_fails_with_value_and_report(project: Project) -> None:
    done = project.tests("""
def test_it(loadgen_run):
    loadgen_run(LOAD).assert_slo("ttft_p99<1us,error_rate<1%")
""")
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines(
        [
            r">       loadgen_run\(LOAD\)\.assert_slo\(.*",
            r"E       AssertionError: ttft_p99<1us is missed: ttft_p99 is [\d.]+ ms of 20 values "
            r"\(p99 needs 662\)",
            r"-+ Captured loadgen call -+",
            r"=+ Serving Benchmark Result =+",
            r"Latency \(ms\), from scheduled send .*",
        ]
    )


def test_an_slo_of_the_run_fails_the_same_way_where_it_is_called(project: Project) -> None:
    done = project.tests("""
def test_it(loadgen_run):
    loadgen_run(LOAD, slo="e2el_max<1us")
""")
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines(
        [r">       loadgen_run\(LOAD, slo=.*", r"E .* e2el_max<1us is missed: e2el_max is .*"]
    )
    assert "loadgen/pytest_plugin.py" not in said(done)


def test_the_same_in_a_coroutine(project: Project) -> None:
    done = project.tests("""
import pytest

@pytest.mark.asyncio
async def test_it(loadgen_run_async):
    await loadgen_run_async(LOAD, slo="e2el_max<1us")
""")
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines([r"E .* e2el_max<1us is missed: .*", r"-+ Captured loadgen call -+"])


def test_run_without_success_or_with_many_errors_fails(project: Project) -> None:
    with started("loadgen.testing.faulty", "--plan", "status:503=1") as broken:
        done = project.tests(
            """
def test_none(loadgen_run):
    loadgen_run(LOAD)
""",
            url=broken.url,
        )
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines(
        [r"E .*0 of 20 requests succeeded.*", r"FAILED: 20 of 20 requests failed \(503: 20\)"]
    )
    with started("loadgen.testing.faulty", "--plan", "status:503=0.5") as broken:
        done = project.tests(
            """
def test_half(loadgen_run):
    loadgen_run(LOAD)

def test_half_is_what_it_expects(loadgen_run):
    assert 0 < loadgen_run(LOAD, max_error_rate=0.9).snapshot.ok < 20
""",
            url=broken.url,
        )
    done.assert_outcomes(failed=1, passed=1)


# -- the verdict

JUDGED = """
import msgspec
import pytest
from loadgen.checks import Check, Verdict

@pytest.fixture(autouse=True)
def verdict(monkeypatch):
    def concluded(*arguments):
        late = Check("lag p99", False, "9 ms", "1 ms", "free a core", group="B")
        return msgspec.structs.replace(conclude(*arguments), verdict=Verdict({verdict!r}), checks=[late])
    from loadgen.runner.run_result import conclude
    monkeypatch.setattr("loadgen.runner.run_result.conclude", concluded)

def test_it(loadgen_run):
    loadgen_run(LOAD, strict={strict})
"""  # noqa: E501


def test_an_invalid_run_fails_and_says_which_check(project: Project) -> None:
    done = project.tests(JUDGED.format(verdict="INVALID", strict=False))
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines([r"E .*the run is INVALID: lag p99: 9 ms, limit 1 ms"])


def test_a_suspect_run_warns_where_the_test_called_it(project: Project) -> None:
    done = project.tests(JUDGED.format(verdict="SUSPECT", strict=False))
    done.assert_outcomes(passed=1, warnings=1)
    done.stdout.re_match_lines(
        [r".*test_it.py:\d+: SuspectRun: the run is SUSPECT: lag p99: 9 ms, limit 1 ms"]
    )


@pytest.mark.parametrize(
    ("strict", "flags"), [(True, []), (False, ["-W", "error::loadgen.pytest_plugin.SuspectRun"])]
)
def test_a_suspect_run_fails_where_it_is_not_to_be_borne(
    project: Project, strict: bool, flags: list[str]
) -> None:
    done = project.tests(JUDGED.format(verdict="SUSPECT", strict=strict), *flags)
    done.assert_outcomes(failed=1)


# -- what is refused


def test_run_without_a_server_is_refused(project: Project) -> None:
    done = project.tests(
        """
def test_it(loadgen_run):
    loadgen_run(num_prompts=1)
""",
        url="",
    )
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines(
        [r"E .*BadInput: base_url: no server is named; give base_url=.*--loadgen-base-url URL.*"]
    )
    assert "loadgen/runner/run.py" not in said(done)


def test_a_field_that_there_is_not_is_refused_with_the_one_that_was_meant(project: Project) -> None:
    done = project.tests("""
def test_it(loadgen_run):
    loadgen_run(LOAD, rate=20)
""")
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines(
        [r"E .*BadInput: rate: is not a field of RunSettings; did you mean request_rate\?"]
    )


def test_a_coroutine_that_takes_the_wrong_fixture_is_told_the_right_one(project: Project) -> None:
    done = project.tests("""
import pytest

@pytest.mark.asyncio
async def test_it(loadgen_run):
    loadgen_run(LOAD)
""")
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines(
        [r"E .*BadInput: run_sync: an event loop runs here already; .*loadgen_run_async.*"]
    )


def test_a_server_that_is_not_there_is_one_line(project: Project) -> None:
    done = project.tests(
        """
def test_it(loadgen_run):
    loadgen_run(LOAD)
""",
        url="http://127.0.0.1:1",
    )
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines(
        [r">       loadgen_run\(LOAD\)", r"E .*Unreachable: http://127\.0\.0\.1:1.*"]
    )
    assert "loadgen/runner/run.py" not in said(done)


# -- files


def test_results_are_kept_named_after_their_tests_whatever_becomes_of_them(
    project: Project, tmp_path: Path
) -> None:
    folder = tmp_path / "kept" / "new"
    done = project.tests(
        """
import pytest

@pytest.mark.parametrize("count", [3])
def test_it(loadgen_run, count):
    loadgen_run(LOAD, num_prompts=count)
    loadgen_run(LOAD, num_prompts=count + 1).assert_slo("ttft_max<1us")
""",
        "--loadgen-save",
        str(folder),
    )
    done.assert_outcomes(failed=1)
    completed = {path.name: json.loads(path.read_text())["completed"] for path in folder.iterdir()}
    name = file_name("test_it.py::test_it[3]")
    assert completed == {f"{name}.json": 3, f"{name}-2.json": 4}


def test_tests_have_distinct_result_files() -> None:
    assert (
        file_name("tests/load/test_it.py::TestIt::test_it")
        == "tests-load-test_it.py-TestIt-test_it"
    )
    params = ("x/y", "x-y", "x y", "é", "ü")
    alike = ["a/b.py::t", "a-b.py::t", *(f"a/b.py::t[{each}]" for each in params)]
    assert len({file_name(each) for each in alike}) == len(alike)
    assert len(file_name("é" * 300).encode()) < 255


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_sent(
    project: Project, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    done = project.tests(
        """
def test_it(loadgen_run):
    loadgen_run(LOAD)
""",
        "--loadgen-save",
        str(tmp_path / "file"),
    )
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines([r"E .*BadInput: --loadgen-save: .* cannot be written.*"])


# -- what it costs


def test_unused_plugin_imports_no_module(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(COSTS)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)
