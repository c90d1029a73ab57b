"""Engines that are started for a run and stopped after it: replicas of one engine, or the simulator."""

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
from loadgen.runner.server import Server, probe
from loadgen.util import gpus
from loadgen.util.plugins import find
from loadgen.util.redaction import redact_command
from loadgen.workload.chat_template.overhead import Overhead

SIMULATOR = "sim"
SIMULATED_DURATION_S = 10.0
SIMULATED_CONCURRENCY = 256
QUIET_S = 1.0  # an engine that starts sooner reports no progress
# The flags of settings, by what an engine calls them.
_FLAGS = {"model": "--model", "served_name": "--served-model-name", "host": "--host", "devices": "--devices"}
_SERVER_SETTINGS = ("base_url", "host", "port", "model", "backend", "endpoint")

logger = logging.getLogger("loadgen")


def wants_engine(settings: RunSettings) -> bool:
    """Return whether an engine is to be started: one is named, or no server at all."""
    return settings.engine is not None or all(getattr(settings, name) is None for name in _SERVER_SETTINGS)


@contextlib.asynccontextmanager
async def open_engine_server(
    settings: RunSettings, check: Callable[[RunSettings], None], on_progress: Callable[[Progress], None]
) -> AsyncIterator[Server]:
    """Start the replicas of the engine that settings name, wait until they answer, and stop them after the context.

    A replica that fails for a reason that may pass is started once more.

    Args:
        settings: Of the run.
        check: Called with the settings as they are for the engine, while it starts, which may take many minutes.
        on_progress: Called a few times a second.

    Raises:
        BadInput: There is no such engine, or it cannot be started so; or `check` raises it.
        EngineError: It does not answer, or something of it is left after it was stopped.
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
            check(settings_for_engine([process], settings, simulated=name == SIMULATOR))

    devices = settings.devices.split(",") if settings.devices else []
    begins = [partial(begin, share) for share in gpus.split_devices(devices, settings.replicas)]
    timeout_s = settings.engine_timeout
    async with open_engines(engine, begins, timeout_s, on_progress, check=checked, tries=2) as session:
        yield await session.server(settings)


@dataclass(frozen=True)
class EngineSession:
    """Replicas of an engine that answer.

    Attributes:
        engine: The engine.
        processes: The process of each replica.
    """

    engine: Any
    processes: tuple[Any, ...]

    async def server(self, settings: RunSettings) -> Server:
        """Probe the replicas as the server of a run with these settings.

        Raises:
            BadInput: They do not have the model.
        """
        name, simulated = self.engine.name, self.engine.name == SIMULATOR
        server = await probe(settings_for_engine(self.processes, settings, simulated=simulated))
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
async def open_engines(
    engine: Any,
    begins: Sequence[Callable[[], Any]],
    timeout_s: float,
    on_progress: Callable[[Progress], None],
    *,
    check: Callable[[Any], None] = lambda process: None,
    tries: int = 1,
) -> AsyncIterator[EngineSession]:
    """Start replicas of an engine, wait until each answers, and stop them after the context.

    Args:
        engine: The engine.
        begins: Each starts one replica, and returns its process.
        timeout_s: How long each may take to answer.
        on_progress: Called a few times a second.
        check: Called with each process as soon as it has started.
        tries: How often a replica is started that fails for a reason that may pass.

    Raises:
        EngineError: One does not answer, or something of one is left after it was stopped.
        BadInput: `begins` or `check` raises it.
    """
    starting = [asyncio.ensure_future(_start(begin, check, timeout_s, on_progress, tries)) for begin in begins]
    try:
        yield EngineSession(engine, tuple(await asyncio.gather(*starting)))
    finally:
        await _stop(starting)


async def _stop(starting: "Sequence[asyncio.Future[Any]]") -> None:
    """Stop the replicas that have started, and keep the others from starting.

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


async def _start(
    begin: Callable[[], Any],
    check: Callable[[Any], None],
    timeout_s: float,
    on_progress: Callable[[Progress], None],
    tries: int,
) -> Any:
    """Start a replica, check it, and return its process once it answers."""
    loop = asyncio.get_running_loop()

    def report(usual_s: float | None, elapsed_s: float, last_line: str) -> None:
        if elapsed_s >= QUIET_S:
            progress = Progress("starting", elapsed_s, note=last_line, usual_s=usual_s)
            loop.call_soon_threadsafe(on_progress, progress)

    for left in reversed(range(tries)):
        beginning = asyncio.ensure_future(asyncio.to_thread(begin))
        try:
            process = await asyncio.shield(beginning)
            await asyncio.to_thread(check, process)
            await asyncio.to_thread(process.ready, timeout_s, partial(report, process.usual_s))
        except EngineError as error:  # it has been stopped
            if not (left and error.transient):
                raise
            logger.warning("started once more, since that may pass: %s", error)
        except BaseException:
            with contextlib.suppress(LoadgenError):  # it did not start, and that error is raised below
                await asyncio.to_thread((await beginning).stop, 0.0)
            raise
        else:
            return process
    raise AssertionError("the last failure is raised")


def settings_for_engine(processes: Sequence[Any], settings: RunSettings, *, simulated: bool) -> RunSettings:
    """Return the settings of a run against engines.

    Args:
        processes: The engines, or how they are started; they are alike.
        settings: Of the run, as they were given.
        simulated: Whether it is the simulator, for which a run without bounds is bounded.
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
    """Bound a run against the simulator where the settings do not."""
    bounded = settings.num_prompts is not None or settings.duration is not None or settings.dataset_name == TRACE
    endless = settings.request_rate == float("inf") and settings.ramp_up_strategy is None and not bounded
    return settings.replace(
        duration=settings.duration if bounded else SIMULATED_DURATION_S,
        max_concurrency=settings.max_concurrency or (SIMULATED_CONCURRENCY if endless else None),
    )


@contextlib.contextmanager
def _tokenizer_of_the_model(settings: RunSettings) -> Iterator[None]:
    """Blame --model for a tokenizer that cannot be used, where the user has named none."""
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
    """Name settings that an engine refuses as the user wrote them."""
    try:
        yield
    except BadInput as error:
        name = error.field.partition(".")[0]
        given = any(word.startswith((f"{name}=", f"{name} ")) or word == name for word in words)
        field = f"--engine-arg {error.field}" if given else _FLAGS.get(name, error.field)
        raise BadInput(field, error.problem, error.remedy) from error
