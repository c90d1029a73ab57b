"""Engine session: start the engine of a run, as one or several replicas, and stop it after the
run.
"""

import asyncio
import contextlib
import logging
import shlex
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from loadgen.config.data import AGENTIC, TRACE
from loadgen.config.request_class import RequestClass
from loadgen.config.settings import RunSettings
from loadgen.config.target import SIMULATOR
from loadgen.errors import BadInput, EngineError, LoadgenError, Place, placed, setting, written_as
from loadgen.metrics.progress import OnProgress, Progress
from loadgen.runner.server import Server, probe
from loadgen.util import accelerators
from loadgen.util.packages import find
from loadgen.util.redaction import redact_command
from loadgen.workload import endpoints
from loadgen.workload.chat_template.template_tokens import TemplateTokens

SIMULATED_DURATION_S = 10.0
SIMULATED_CONCURRENCY = 256
QUIET_S = 1.0  # an engine that starts sooner reports no progress
# Settings of engines that are settings of a run, too.
_OF_RUN = {
    "model": setting.model,
    "served_name": setting.served_model_name,
    "host": setting.host,
    "devices": setting.devices,
}

logger = logging.getLogger("loadgen")


@contextlib.asynccontextmanager
async def start_engine_server(
    settings: RunSettings, check: Callable[[RunSettings], None], on_progress: OnProgress
) -> AsyncIterator[Server]:
    """Start the replicas of a run's engine, wait until all are ready, and stop them after the
    block.

    A replica that fails for a reason that may pass is started once more.

    Args:
        settings: The settings of the run.
        check: Called with the settings of the run on the engine, while the engine starts, which may
            take minutes.
        on_progress: Called a few times a second.

    Yields:
        The replicas, as the server of the run.

    Raises:
        BadInput: The engine is unknown or cannot be started like this, or `check` raises it.
        EngineError: A replica does not become ready, or is not stopped completely.
    """
    name = settings.engine
    assert name is not None
    engine = find("engines", name)
    launcher = find("launchers", "local")()
    served_name = (
        (f"served_name={settings.served_model_name}",) if settings.served_model_name else ()
    )
    with placed(partial(_engine_place, settings.engine_arg)):
        knobs, raw = launcher.given((*served_name, *settings.engine_arg), engine.knobs())
    if name == SIMULATOR:
        raw = [*raw, *_simulator_flags(settings.request_classes)]

    def begin(devices: Sequence[str]) -> Any:
        with placed(partial(_engine_place, settings.engine_arg)):
            host = settings.host or "127.0.0.1"
            return launcher.begin(
                engine, settings.model or name, knobs, raw, host=host, devices=devices
            )

    def check_process(process: Any) -> None:
        model = str(settings.model)
        if settings.tokenizer is None and model.endswith(".gguf") and not Path(model).exists():
            raise BadInput(setting.model, f"file {model} not found", "give the path of the model")
        with written_as(_tokenizer_of_model(settings)):
            check(settings_for_engine([process], settings, simulated=name == SIMULATOR))

    devices = settings.devices.split(",") if settings.devices else []
    begins = [
        partial(begin, share) for share in accelerators.split_devices(devices, settings.replicas)
    ]
    timeout_s = settings.engine_timeout
    chat = (
        None
        if settings.backend in (None, "sglang-native")
        else endpoints.find(settings).takes_messages
    )
    async with start_engines(
        engine, begins, timeout_s, on_progress, check=check_process, tries=2, chat=chat
    ) as session:
        yield await session.server(settings)


def _simulator_flags(classes: Sequence[RequestClass]) -> list[str]:
    """Return the flags with which the simulator has the adapters and priorities that classes
    request.
    """
    adapters = list(
        dict.fromkeys(
            request_class.model for request_class in classes if request_class.model is not None
        )
    )
    flags = ["--lora-modules", ",".join(adapters)] if adapters else []
    if any(request_class.priority for request_class in classes):
        flags += ["--scheduling-policy", "priority"]
    return flags


class EngineSession(Struct, frozen=True):
    """Ready replicas of an engine.

    Attributes:
        engine: The kind of engine.
        processes: The server process of each replica.
    """

    engine: Any
    processes: tuple[Any, ...]

    async def server(self, settings: RunSettings) -> Server:
        """Return the replicas as the server of a run with these settings.

        Raises:
            BadInput: They do not have the model.
        """
        name = self.engine.name
        simulated = name == SIMULATOR
        server = await probe(settings_for_engine(self.processes, settings, simulated=simulated))
        differences: list[Any] = []
        for process in self.processes:
            differences += await asyncio.to_thread(process.differences)
        installed = await asyncio.to_thread(self.engine.version)
        tokens = self.processes[0].template_tokens
        return replace(
            server,
            about={
                "name": name,
                "simulated": simulated,
                "installed": installed,
                "commands": [
                    shlex.join(redact_command(process.launch.argv)) for process in self.processes
                ],
                "differences": list(map(str, differences)),
            }
            | server.about,
            simulated=simulated,
            processes=self.processes,
            template_tokens=None
            if tokens is None
            else TemplateTokens(tokens, f"the chat template of {name}"),
        )


@contextlib.asynccontextmanager
async def start_engines(
    engine: Any,
    begins: Sequence[Callable[[], Any]],
    timeout_s: float,
    on_progress: OnProgress,
    *,
    check: Callable[[Any], None] = lambda process: None,
    tries: int = 1,
    chat: bool | None = None,
) -> AsyncIterator[EngineSession]:
    """Start replicas of an engine, wait until all are ready, and stop them after the block.

    Args:
        engine: The kind of engine.
        begins: Functions that start one replica each, and return its process.
        timeout_s: Maximum start-up time of each replica, s.
        on_progress: Called a few times a second.
        check: Called with each process as soon as it is started.
        tries: Maximum number of starts of a replica that fails for a reason that may pass.
        chat: Whether the request that shows that a replica is ready is a chat, or a completion;
            None: what it has.

    Yields:
        The ready replicas.

    Raises:
        EngineError: A replica does not become ready, or is not stopped completely.
        BadInput: A function of `begins`, or `check`, raises it.
    """
    loop = asyncio.get_running_loop()

    def report(usual_s: float | None, elapsed_s: float, last_line: str) -> None:
        if elapsed_s >= QUIET_S:
            progress = Progress("starting", elapsed_s, note=last_line, usual_s=usual_s)
            loop.call_soon_threadsafe(on_progress, progress)

    async def start(begin: Callable[[], Any]) -> Any:
        """Start a replica, check it, and return its process when it is ready."""
        for left in reversed(range(tries)):
            beginning = asyncio.ensure_future(asyncio.to_thread(begin))
            try:
                process = await asyncio.shield(beginning)
                await asyncio.to_thread(check, process)
                await asyncio.to_thread(
                    process.ready, timeout_s, partial(report, process.usual_s), chat=chat
                )
            except EngineError as error:  # it is stopped already
                if not (left and error.transient):
                    raise
                logger.warning("starting the engine once more, since this may pass: %s", error)
            except BaseException:
                with contextlib.suppress(
                    LoadgenError
                ):  # it never started, and the first error is raised
                    await asyncio.to_thread((await beginning).stop, 0.0)
                raise
            else:
                return process
        raise AssertionError("the last failure is raised")

    starting = [asyncio.ensure_future(start(begin)) for begin in begins]
    try:
        yield EngineSession(engine, tuple(await asyncio.gather(*starting)))
    finally:
        await _stop_replicas(starting)


async def _stop_replicas(starting: "Sequence[asyncio.Future[Any]]") -> None:
    """Stop the replicas that have started, and cancel the others.

    Raises:
        EngineError: A replica is not stopped completely.
    """
    for start in starting:
        start.cancel()
    processes = await asyncio.gather(*starting, return_exceptions=True)
    stops = [
        asyncio.to_thread(process.stop)
        for process in processes
        if not isinstance(process, BaseException)
    ]
    for error in await asyncio.gather(*stops, return_exceptions=True):
        if error is not None:
            raise error


def settings_for_engine(
    processes: Sequence[Any], settings: RunSettings, *, simulated: bool
) -> RunSettings:
    """Return the settings of a run that sends its requests to servers of an engine.

    Args:
        processes: The servers, or their launches; all have the same model.
        settings: The user's settings of the run.
        simulated: Whether the engine is the simulator; its runs get a duration and a limit of
            concurrency if nothing else limits them.
    """
    process = processes[0]
    model = settings.model or process.model
    run_settings = settings.replace(
        engine=None,
        engine_arg=(),
        replicas=1,
        devices=None,
        host=None,
        base_url=tuple(server.base_url for server in processes),
        backend=settings.backend or "openai-chat",
        model=model,
        served_model_name=None if process.model == model else process.model,
        tokenizer=settings.tokenizer or process.tokenizer,
    )
    if not simulated:
        return run_settings
    # Each session, or request, of these data sets is sent once.
    recorded = run_settings.dataset_name in (TRACE, AGENTIC)
    counted = (
        run_settings.num_prompts is not None or recorded or run_settings.load_profile is not None
    )
    at_once = run_settings.request_rate == float("inf") and not run_settings.rate_changes
    endless = at_once and not counted
    duration = run_settings.duration
    cap = run_settings.max_concurrency
    return run_settings.replace(
        duration=duration if counted else duration or SIMULATED_DURATION_S,
        max_concurrency=cap or (SIMULATED_CONCURRENCY if endless else None),
    )


def _tokenizer_of_model(settings: RunSettings) -> dict[str, Place]:
    """Return where the tokenizer was written, for `written_as`: the model has it, if the user gave
    no other.
    """
    if settings.tokenizer is not None:
        return {}
    return {setting.tokenizer: (setting.model, "its tokenizer")}


def _engine_place(words: Sequence[str], path: Place) -> Place:
    """Return where a setting of an engine was written: in --engine-arg, or a flag of its own."""
    name, *_ = str(path[0]).split(".")
    if any(word.startswith((f"{name}=", f"{name} ")) or word == name for word in words):
        return (f"{setting.engine_arg} {path[0]}", *path[1:])
    return (_OF_RUN.get(name, path[0]), *path[1:])
