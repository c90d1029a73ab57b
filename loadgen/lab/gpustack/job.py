"""A command line of benchmark-runner, as runs of loadgen that follow one another, or as a search.

Settings come from a profile of --scenario, from the flags of the server, and from `data`, the
flags of the prompts.
"""

import json
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from loadgen.config import gpustack_profile, presets
from loadgen.config.backends import BACKENDS
from loadgen.config.option import ABOVE_0, BELOW_1, Range
from loadgen.errors import BadInput, setting, within
from loadgen.lab.gpustack import arguments, data, steps
from loadgen.lab.gpustack.arguments import read_number
from loadgen.lab.gpustack.auto_tune import AutoTune
from loadgen.lab.gpustack.progress import Receiver
from loadgen.lab.gpustack.steps import Step
from loadgen.lab.gpustack.transient import NO_TRANSIENTS, Transients

# Reasoning tokens always count.
CHAT = BACKENDS["openai-chat"].path
HANDLERS = (CHAT, "chat_completions", "chat_completions_with_reasoning")
# The keys whose values are those of a flag. GPUStack composes the same flags from them.
VALUES = {
    arguments.name_of(flag): flag
    for flag in (
        *("--lower-bound", "--upper-bound", "--max-points", "--max-total-seconds"),
        *("--max-seconds", "--max-errors", "--max-error-rate", "--stages", "--warmup"),
        *("--cooldown", *chain(*arguments.LIMITS.values())),
    )
}
# The keys that are true or false, and the flags of both.
SWITCHES = {
    "auto_tune": ("--auto-tune", None),
    "stop_on_saturation": ("--detect-saturation", None),
    "dataset_seed_increment": ("--seed-increment", "--no-seed-increment"),
}
AXIS = "load_type"
AXES = {"fixed_rate": "rate", "concurrency": "concurrency"}
KEYS = (*VALUES, *SWITCHES, AXIS)
SEED = 42  # guidellm's default
SUMMARIES = (".json", ".summary_json", ".dual_json")
DEFAULT_NAME = "benchmarks.json"
FIELDS = {  # flags, and the fields of `RunSettings` that they set
    "max_requests": "num_prompts",
    "max_seconds": "duration",
    "max_error_rate": "max_error_rate",
    "disable_console": "quiet",
    "disable_console_interactive": "disable_tqdm",
}
MAX_ERRORS = Range("1 or more, or leave it out for no limit", 1)
MAX_ERROR_RATE = Range("a share between 0 and 1, or leave it out for no limit", ABOVE_0, BELOW_1)


@dataclass(frozen=True)
class Job:
    """A benchmark job.

    Attributes:
        steps: The runs, one after the other; none, if the job is a search.
        auto_tune: The search, or None.
        output: The path of the summary, or of which those of stages and points are made.
        axis: rate or concurrency: what the rates of stages are.
        phases: The requests that the summaries leave out.
        progress: The receiver of the progress, or None.
        max_errors: A run stops sending after this many failed requests; None: no limit.
        max_error_rate: A run stops sending, and fails, above this share of failed requests; None:
            no limit.
        detect_saturation: Whether a run stops sending once requests pile up.
    """

    steps: tuple[Step, ...]
    auto_tune: AutoTune | None = None
    output: Path = Path(DEFAULT_NAME)
    axis: str = "rate"
    phases: Transients = NO_TRANSIENTS
    progress: Receiver | None = None
    max_errors: int | None = None
    max_error_rate: float | None = None
    detect_saturation: bool = False

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Job":
        """Return the job of a command line.

        Args:
            values: What `arguments.parse` returns.

        Raises:
            BadInput: A flag is wrong or refused; nothing has been sent or written.
        """
        flags, settings = resolve(values["scenario"]) if "scenario" in values else ({}, {})
        values = flags | values
        errors = values.get("max_errors")
        share = values.get("max_error_rate")
        MAX_ERRORS.check("--max-errors", errors)
        MAX_ERROR_RATE.check("--max-error-rate", share)
        common = presets.GPUSTACK | settings | settings_of(values) | _data(values)
        common |= {field: values[name] for name, field in FIELDS.items() if name in values}
        output = _output(values)
        search = AutoTune.of(values, common, output)
        runs: tuple[Step, ...] = ()
        if search is None:
            in_stages = "stages" in values
            runs = (
                steps.stages(values, common, output)
                if in_stages
                else (steps.single(values, common, output),)
            )
        receiver = None
        if "progress_url" in values:
            receiver = Receiver(
                values["progress_url"],
                values.get("progress_auth"),
                values.get("progress_ca_cert"),
                values.get("progress_insecure_skip_tls_verify", False),
            )
        return cls(
            runs,
            search,
            output,
            axis=values.get("axis", "rate"),
            phases=Transients.of(values),
            progress=receiver,
            max_errors=errors,
            max_error_rate=share,
            detect_saturation=values.get("detect_saturation", False),
        )


def resolve(name_or_file: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a scenario gives.

    Args:
        name_or_file: A preset, or a file with profiles of GPUStack; `FILE#NAME` chooses one of
            several.

    Returns:
        Values by flag name, as `arguments.parse` returns them, and fields of `RunSettings`.

    Raises:
        BadInput: There is no such preset or profile, or a value is wrong.
    """
    place = presets.profile_file(name_or_file)
    if place is None:
        return {}, presets.resolve(name_or_file)
    path, name = place
    content = gpustack_profile.content(path, name)
    words: list[str] = []
    for key in KEYS:
        value = content.get(key)
        if value is None:
            continue
        if key == AXIS:
            if value not in AXES:
                raise BadInput(AXIS, f"invalid value {value!r}", f"choose from {', '.join(AXES)}")
            words += ["--axis", AXES[value]]
        elif key in SWITCHES:
            if not isinstance(value, bool):
                raise BadInput(key, f"invalid value {value!r}", "write true or false")
            flag = SWITCHES[key][not value]
            words += [] if flag is None else [flag]
        else:
            words += [VALUES[key], value if isinstance(value, str) else json.dumps(value)]
    with within(str(path)):
        settings = gpustack_profile.fields(
            {key: value for key, value in content.items() if key not in KEYS}
        )
    return arguments.parse(words), presets.gpustack(settings)


def settings_of(flags: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `RunSettings` for the server.

    Args:
        flags: The flags, as `arguments.parse` returns them.

    Raises:
        BadInput: The server is missing, or a flag is not supported.
    """
    backend = dict(flags.get("backend_kwargs", {}))
    url = flags.get("target") or backend.pop("target", None)
    if not url:
        raise BadInput("--target", "missing", "name the server, for example http://127.0.0.1:8000")
    chat = flags.get("request_type") != "text_completions"
    settings = {"base_url": url, "backend": "openai-chat" if chat else "openai"}
    settings["endpoint"] = CHAT if chat else BACKENDS["openai"].path
    if model := flags.get("model") or backend.pop("model", None):
        settings["model"] = model
    if "processor" in flags:
        settings["tokenizer"] = flags["processor"]
    if unknown := set(flags.get("processor_args", {})) - {"trust_remote_code"}:
        raise BadInput(f"--processor-args {min(unknown)}", "not supported", "leave it out")
    return settings | _backend(backend)


def _backend(backend_kwargs: dict[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for key, value in backend_kwargs.items():
        handlers = (*value, *value.values()) if isinstance(value, dict) else (None,)
        match key:
            case "timeout":  # in guidellm it bounds every read: the first one, and later silence
                patience = read_number(value or 0, setting.first_token_timeout)
                settings |= {"first_token_timeout": patience, "stall_timeout": patience}
            case "api_key":
                settings["api_key"] = value
            case "verify":
                settings["insecure"] = not value
            case (
                "api_routes"
            ):  # where guidellm asks whether the server is alive: a run asks the API itself
                pass
            case "request_handlers" | "response_handlers" if all(
                name in HANDLERS for name in handlers
            ):
                pass
            case _:
                remedy = (
                    "leave it out: timeout, api_key, verify and the handlers of chat "
                    "completions are supported"
                )
                raise BadInput(f"--backend-kwargs {key}", f"{value!r} is not supported", remedy)
    return settings


def _data(flags: dict[str, Any]) -> dict[str, Any]:
    seed = flags.get("random_seed")
    if "data" not in flags:
        if "scenario" not in flags:
            raise BadInput("--data", "missing", data.SYNTHETIC)
        return {} if seed is None else {"seed": seed}
    if len(flags["data"]) > 1:
        raise BadInput("--data", "is given more than once", "give one, and run once for each")
    settings = data.fields(flags["data"][0], SEED if seed is None else seed)
    low = flags.get("sharegpt_min_input_tokens")
    high = flags.get("sharegpt_max_input_tokens")
    if low is not None or high is not None:
        settings["sharegpt_input_len"] = (
            f"{'' if low is None else low}:{'' if high is None else high}"
        )
    if "sharegpt_max_output_tokens" in flags:
        settings["sharegpt_output_len"] = flags["sharegpt_max_output_tokens"]
    return settings


def _output(flags: dict[str, Any]) -> Path:
    folder = Path(flags.get("output_dir", "."))
    names = flags.get("outputs", [])
    if "output_path" in flags:
        if "output_dir" in flags:
            raise BadInput(
                "--output-path", "cannot be combined with --output-dir", "leave one of the two out"
            )
        path = Path(flags["output_path"])
        folder, names = (path, names) if path.is_dir() else (path.parent, [path.name])
    names = ",".join(names).split(",") if names else [DEFAULT_NAME]
    if len(names) > 1:
        raise BadInput(
            "--outputs",
            f"{len(names)} names are given",
            "give one name for the summary, for example 7.json",
        )
    name = DEFAULT_NAME if f".{names[0]}" in SUMMARIES else names[0]
    if not name.endswith(SUMMARIES):
        raise BadInput(
            "--outputs",
            f"{name} is not a name of a JSON file",
            "give a name for the summary, for example 7.json",
        )
    return folder / Path(name).with_suffix(".json")
