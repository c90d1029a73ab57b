"""Settings of calls to the server beside the load: its profiler, and what is called before the clock starts."""

from dataclasses import dataclass
from typing import Any

from loadgen.config.option import TARGET, option

PROFILE_S = 5.0  # the default of --profile-duration, as in vllm-rs


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)  # a part of RunSettings
class ServerCallSettings:
    """Fields of the calls, with the names and meanings of `vllm bench serve` and `vllm-rs bench serve`."""

    profile: bool = option(
        False,
        TARGET,
        "start the server's profiler after the warm-up and stop it after the run: POST /start_profile, /stop_profile",
    )
    profile_body: dict[str, Any] | None = option(
        None,
        TARGET,
        "JSON object for /start_profile; with num_steps (SGLang) or max_iterations (vLLM) the profiler stops by itself",
        metavar="JSON",
    )
    profile_url: tuple[str, ...] = option(
        (),
        TARGET,
        "servers whose profiler is started, such as the prefill workers behind a router (those of --base-url)",
        metavar="URL",
    )
    profile_batch_threshold: int | None = option(
        None, TARGET, "start the profiler when the server runs this many requests at once", metavar="N"
    )
    profile_duration: float = option(
        PROFILE_S, TARGET, "with --profile-batch-threshold: seconds until the profiler is stopped", metavar="TIME"
    )
    call_before: tuple[str, ...] = option(
        (),
        TARGET,
        "paths of the server that receive a POST before the clock starts, such as /reset_mm_cache of vLLM",
        metavar="PATH",
    )
