"""Launched: engines that are started to be measured, and put away after it: replicas of one, or the simulator."""

import asyncio
import contextlib
import logging
import shlex
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from loadgen.config.data import TRACE
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, EngineError, LoadgenError
from loadgen.metrics.progress import Progress
from loadgen.runner.server import Server
from loadgen.runner.targets import running
from loadgen.util import gpus
from loadgen.util.plugins import find
from loadgen.util.redaction import redact_command
from loadgen.workload.template_overhead import Overhead

SIMULATOR = "sim"
SIMULATED_DURATION_S = 10.0
SIMULATED_CONCURRENCY = 256
QUIET_S = 1.0  # what starts sooner needs no word
# What an engine calls a setting that has a flag of its own.
_FLAGS = {"model": "--model", "served_name": "--served-model-name", "host": "--host", "devices": "--devices"}
_NAMES_A_SERVER = ("base_url", "host", "port", "model", "backend", "endpoint")

logger = logging.getLogger("loadgen")


def wants_engine(settings: RunSettings) -> bool:
    """Whether an engine is to be started: one is named, or no server at all."""
    return settings.engine is not None or all(getattr(settings, name) is None for name in _NAMES_A_SERVER)


@contextlib.asynccontextmanager
async def launched(
    settings: RunSettings, check: Callable[[RunSettings], None], on_progress: Callable[[Progress], None]
) -> AsyncIterator[Server]:
    """Start the engine, as often as replicas are asked, wait until each answers, and put them away in the end.

    One that fails for a reason that may pass is started once more.

    Args:
        settings: Of the run.
        check: Called with what will be asked of the engine, while that starts, which may take many minutes.
        on_progress: Called a few times a second.

    Raises:
        BadInput: There is no such engine, or it cannot be started so; or `check` says it.
        EngineError: It does not answer, or something of it is left in the end.
    """
    name = settings.engine or SIMULATOR
    engine, launcher = find("engines", name), find("launchers", "local")()
    asked = (f"served_name={settings.served_model_name}",) if settings.served_model_name else ()
    with _named_as_given(settings.engine_arg):
        knobs, raw = launcher.given((*asked, *settings.engine_arg))

    def begin(devices: Sequence[str]) -> Any:
        with _named_as_given(settings.engine_arg):
            host = settings.host or "127.0.0.1"
            return launcher.begin(engine, settings.model or name, knobs, raw, host=host, devices=devices)

    def checked(process: Any) -> None:
        with _tokenizer_of_the_model(settings):
            check(asking([process], settings, simulated=name == SIMULATOR))

    devices = settings.devices.split(",") if settings.devices else []
    begins = [partial(begin, share) for share in gpus.split_devices(devices, settings.replicas)]
    timeout_s = settings.engine_timeout
    async with started(engine, begins, timeout_s, on_progress, check=checked, tries=2) as engines:
        yield await engines.server(settings)


@dataclass(frozen=True)
class Started:
    """Replicas of an engine that answer.

    Attributes:
        engine: Of which kind.
        processes: One for each replica.
    """

    engine: Any
    processes: tuple[Any, ...]

    async def server(self, settings: RunSettings) -> Server:
        """The replicas as the server of a run with these settings.

        Raises:
            BadInput: They do not have the model.
        """
        name, simulated = self.engine.name, self.engine.name == SIMULATOR
        server = await running(asking(self.processes, settings, simulated=simulated))
        each = [await asyncio.to_thread(process.differences) for process in self.processes]
        installed = await asyncio.to_thread(self.engine.version)
        tokens = self.processes[0].template_tokens
        return replace(
            server,
            about={
                "name": name,
                "simulated": simulated,
                "installed": installed,
                "commands": [shlex.join(redact_command(process.launch.argv)) for process in self.processes],
                "differences": [str(d) for one in each for d in one],
            }
            | server.about,
            simulated=simulated,
            processes=self.processes,
            overhead=None if tokens is None else Overhead(tokens, f"the chat template of {name}"),
        )


@contextlib.asynccontextmanager
async def started(
    engine: Any,
    begins: Sequence[Callable[[], Any]],
    timeout_s: float,
    on_progress: Callable[[Progress], None],
    *,
    check: Callable[[Any], None] = lambda process: None,
    tries: int = 1,
) -> AsyncIterator[Started]:
    """Start replicas of an engine, wait until each answers, and put them away in the end.

    Args:
        engine: Which.
        begins: Each begins one, and returns its process.
        timeout_s: Until each answers.
        on_progress: Called a few times a second.
        check: Called with each process as soon as there is one.
        tries: How often one is started that fails for a reason that may pass.

    Raises:
        EngineError: One does not answer, or something of one is left in the end.
        BadInput: `begins` or `check` says it.
    """
    starting = [asyncio.ensure_future(_answering(begin, check, timeout_s, on_progress, tries)) for begin in begins]
    try:
        yield Started(engine, tuple(await asyncio.gather(*starting)))
    finally:
        await _put_away(starting)


async def _put_away(starting: "Sequence[asyncio.Future[Any]]") -> None:
    """Stop what has started, and keep from starting what has not.

    Raises:
        EngineError: Something of one is left.
    """
    for each in starting:
        each.cancel()
    started = await asyncio.gather(*starting, return_exceptions=True)
    stops = [asyncio.to_thread(each.stop) for each in started if not isinstance(each, BaseException)]
    for error in await asyncio.gather(*stops, return_exceptions=True):
        if error is not None:
            raise error


async def _answering(
    begin: Callable[[], Any],
    check: Callable[[Any], None],
    timeout_s: float,
    on_progress: Callable[[Progress], None],
    tries: int,
) -> Any:
    """A process that has answered; it was checked before."""
    loop = asyncio.get_running_loop()

    def tell(usual_s: float | None, elapsed_s: float, last_line: str) -> None:
        if elapsed_s >= QUIET_S:
            progress = Progress("starting", elapsed_s, note=last_line, usual_s=usual_s)
            loop.call_soon_threadsafe(on_progress, progress)

    for left in reversed(range(tries)):
        beginning = asyncio.ensure_future(asyncio.to_thread(begin))
        try:
            process = await asyncio.shield(beginning)
            await asyncio.to_thread(check, process)
            await asyncio.to_thread(process.ready, timeout_s, partial(tell, process.usual_s))
        except EngineError as error:  # it has been stopped
            if not (left and error.transient):
                raise
            logger.warning("started once more, since that may pass: %s", error)
        except BaseException:
            with contextlib.suppress(LoadgenError):  # it never began, and that is what is raised
                await asyncio.to_thread((await beginning).stop, 0.0)
            raise
        else:
            return process
    raise AssertionError("the last failure is raised")


def asking(processes: Sequence[Any], settings: RunSettings, *, simulated: bool) -> RunSettings:
    """The settings of a run that asks servers of an engine.

    Args:
        processes: The servers, or how they are started; they are alike.
        settings: Of the run, as they were given.
        simulated: Whether it is the simulator, which is asked within bounds.
    """
    process = processes[0]
    model = settings.model or process.model
    asked = settings.replace(
        engine=None,
        engine_arg=(),
        replicas=1,
        devices=None,
        host=None,
        base_url=tuple(each.base_url for each in processes),
        backend=settings.backend or "openai-chat",
        model=model,
        served_model_name=None if process.model == model else process.model,
        tokenizer=settings.tokenizer or process.tokenizer,
    )
    return _bounded(asked) if simulated else asked


def _bounded(settings: RunSettings) -> RunSettings:
    """What is asked of the simulator, within bounds where nothing bounds it."""
    bounded = settings.num_prompts is not None or settings.duration is not None or settings.dataset_name == TRACE
    endless = settings.request_rate == float("inf") and settings.ramp_up_strategy is None and not bounded
    return settings.replace(
        duration=settings.duration if bounded else SIMULATED_DURATION_S,
        max_concurrency=settings.max_concurrency or (SIMULATED_CONCURRENCY if endless else None),
    )


@contextlib.contextmanager
def _tokenizer_of_the_model(settings: RunSettings) -> Iterator[None]:
    """A tokenizer that cannot be used is the model's own, where its user has named none."""
    try:
        yield
    except BadInput as error:
        if error.field != "--tokenizer" or settings.tokenizer is not None:
            raise
        if str(settings.model).endswith(".gguf") and not Path(str(settings.model)).exists():
            raise BadInput("--model", f"there is no file {settings.model}", "give the path of the model") from error
        problem = f"its tokenizer cannot be used: {error.problem}"
        raise BadInput("--model", problem, f"{error.remedy}; --tokenizer names another") from error


@contextlib.contextmanager
def _named_as_given(words: Sequence[str]) -> Iterator[None]:
    """What an engine finds unusable is named as its user wrote it."""
    try:
        yield
    except BadInput as error:
        name = error.field.partition(".")[0]
        given = any(word.startswith((f"{name}=", f"{name} ")) or word == name for word in words)
        field = f"--engine-arg {error.field}" if given else _FLAGS.get(name, error.field)
        raise BadInput(field, error.problem, error.remedy) from error
