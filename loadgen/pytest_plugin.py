"""The plugin for pytest, which finds it by itself: fixtures that run a load, and fail as the
command would.

Importing it imports nothing else of loadgen; a fixture does, when a test asks for it.
"""

import hashlib
import re
import warnings
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from loadgen.config.settings import RunSettings
    from loadgen.errors import LoadgenError
    from loadgen.runner.run_result import Result
    from loadgen.workload.prompt import Dataset

BASE_URL, SAVE = "--loadgen-base-url", "--loadgen-save"
LONGEST = 120  # letters of a test's id in the name of a file, which may have 255 bytes


class SuspectRun(UserWarning):
    """The verdict on a run is SUSPECT: a figure may be off, or the load was not the one that was
    asked for.
    """


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("loadgen", "loadgen: load on LLM servers")
    group.addoption(BASE_URL, metavar="URL", help="the server of runs that name none")
    group.addoption(
        SAVE, metavar="DIR", help="keep the result of every run there, named after its test"
    )


class Runs:
    """The runs of one test: what they are asked, where their results go, and what they have to be.

    Args:
        request: The request of the fixture.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._test: pytest.Item = request.node
        self._url: str | None = request.config.getoption(BASE_URL)
        self._folder: str | None = request.config.getoption(SAVE)
        self._count = 0

    def settings(self, given: "RunSettings | None", fields: dict[str, Any]) -> "RunSettings":
        """What a run is asked: the settings, with these fields changed, and the server and files of
        the options.

        Raises:
            BadInput: A field that there is not; no server is named; or a file cannot be written.
        """
        from loadgen import BadInput, RunSettings
        from loadgen.config import output_check
        from loadgen.errors import setting, written_as

        asked = (given or RunSettings()).replace(**fields)
        if (asked.engine, asked.base_url, asked.host, asked.port) == (None,) * 4:
            if self._url is None:
                remedy = (
                    f'give base_url=..., or pytest {BASE_URL} URL; engine="sim" is the '
                    "built-in simulator"
                )
                raise BadInput("base_url", "no server is named", remedy)
            asked = asked.replace(base_url=self._url)
        if self._folder is not None:
            self._count += 1
            again = f"-{self._count}" if self._count > 1 else ""
            asked = asked.replace(
                save_result=True,
                result_dir=self._folder,
                result_filename=f"{file_name(self._test.nodeid)}{again}.json",
            )
        with written_as({setting.result_dir: (SAVE,)} if self._folder is not None else {}):
            output_check.check_writable(asked)
        return asked

    def failure(self, error: "LoadgenError") -> BaseException:
        """What a test fails with where a run raises this: an error without the frames of what
        raised it, because its one line says what to do.
        """
        from loadgen import UnsavedResult

        if isinstance(error, UnsavedResult):
            self.report(error.result)
            return pytest.fail.Exception(str(error))
        return error.with_traceback(None)

    def report(self, result: "Result") -> None:
        """Put the report of a result where pytest shows it, if the test fails."""
        self._test.add_report_section("call", "loadgen", str(result))

    def judged(self, result: "Result", asked: "RunSettings") -> "Result":
        """The result, its report put where it belongs; fails where the command would."""
        __tracebackhide__ = True
        from loadgen import Verdict
        from loadgen.cli import exit_codes
        from loadgen.report.run_state import state_text

        self.report(result)
        match exit_codes.code(result, strict=asked.strict, interrupted=False):
            case exit_codes.INVALID | exit_codes.SUSPECT:
                pytest.fail(_doubts(result))
            case exit_codes.STOPPED:
                pytest.fail(f"the run was ended: {result.partial}")
            case exit_codes.ERRORS:
                done = f"{result.numbers.completed} of {result.scheduled} requests succeeded"
                ended = f"the run was ended: {partial}; " if (partial := result.partial) else ""
                pytest.fail(f"{ended}{done}; max_error_rate is {asked.max_error_rate:g}")
            case exit_codes.SLO_MISSED:
                assert asked.slo is not None
                result.assert_slo(asked.slo)
                pytest.fail(state_text(result))  # too few requests
        if result.verdict is Verdict.SUSPECT:
            warnings.warn(SuspectRun(_doubts(result)), stacklevel=3)
        return result


@pytest.fixture
def loadgen_run(request: pytest.FixtureRequest) -> "Callable[..., Result]":
    """Run a load and return its `loadgen.Result`: `loadgen_run(request_rate=20, num_prompts=700,
    slo="ttft_p99<1s")`.

    It takes a `loadgen.RunSettings`, or fields of one as keywords, or both; and `dataset`, prompts
    of your own. A test fails where `loadgen run` would not exit with 0, and warns where the verdict
    is SUSPECT. For tests that are coroutines there is `loadgen_run_async`.
    """
    runs = Runs(request)

    def measure(
        settings: "RunSettings | None" = None, *, dataset: "Dataset | None" = None, **fields: Any
    ) -> "Result":
        __tracebackhide__ = True
        from loadgen import LoadgenError, run_sync

        try:
            asked = runs.settings(settings, fields)
            result = run_sync(asked, dataset=dataset)
        except LoadgenError as error:
            raise runs.failure(error) from None
        return runs.judged(result, asked)

    return measure


@pytest.fixture
def loadgen_run_async(request: pytest.FixtureRequest) -> "Callable[..., Awaitable[Result]]":
    """As `loadgen_run`, in the running event loop: `await loadgen_run_async(...)`."""
    runs = Runs(request)

    async def measure(
        settings: "RunSettings | None" = None, *, dataset: "Dataset | None" = None, **fields: Any
    ) -> "Result":
        __tracebackhide__ = True
        from loadgen import LoadgenError, run

        try:
            asked = runs.settings(settings, fields)
            result = await run(asked, dataset=dataset)
        except LoadgenError as error:
            raise runs.failure(error) from None
        return runs.judged(result, asked)

    return measure


def file_name(node_id: str) -> str:
    """The name under which a test's result is kept, without an ending: its id, in letters that a
    file may have.

    Where they do not tell it apart from every other, some of its hash stands behind them.
    """
    plain = re.sub(r"[^\w.=+@]+", "-", node_id, flags=re.ASCII).strip("-")
    told_apart = "-" not in node_id and plain == re.sub("/|::", "-", node_id)
    if told_apart and len(plain) <= LONGEST:
        return plain
    return f"{plain[:LONGEST]}-{hashlib.sha256(node_id.encode()).hexdigest()[:8]}"


def _doubts(result: "Result") -> str:
    """Write the verdict, and the checks that it follows from."""
    return f"the run is {result.verdict}: {'; '.join(result.reasons())}"
