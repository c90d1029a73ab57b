"""A command line of benchmark-runner, as runs of loadgen that follow one another."""

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.cli.gpustack import arguments, data
from loadgen.cli.gpustack.progress import Receiver
from loadgen.cli.gpustack.summary import Strategy
from loadgen.config import presets
from loadgen.config.settings import RunSettings
from loadgen.config.target import CHAT_ENDPOINT, COMPLETIONS_ENDPOINT
from loadgen.errors import BadInput

SEED = 42  # guidellm's default
HANDLERS = (CHAT_ENDPOINT, "chat_completions", "chat_completions_with_reasoning")  # reasoning tokens always count
SUMMARIES = (".json", ".summary_json", ".dual_json")
DEFAULT_NAME = "benchmarks.json"
UNLIMITED = -1.0  # GPUStack's request_rate
# The names here of the flags of `loadgen run` that errors name.
FLAG_NAMES = {
    "--base-url": "--target",
    "--tokenizer": "--processor",
    "--api-key": "--backend-kwargs api_key",
    "--first-token-timeout": "--backend-kwargs timeout",
    "--stall-timeout": "--backend-kwargs timeout",
    "--request-rate": "--rate",
    "--num-prompts": "--max-requests",
    "--duration": "--max-seconds",
    "--dataset-path": "--data",
    "--dataset-rule": "--data",
    "--random-input-len": "--data prompt_tokens",
    "--random-output-len": "--data output_tokens",
    "--sharegpt-output-len": "--sharegpt-max-output-tokens",
    "--seed": "--random-seed",
    "--records": "--output-dir",
    "--workload": "--scenario",
}
# The keys of a stage, and the corresponding flags of `loadgen run`.
STAGE = {"rate": "--request-rate", "max_requests": "--num-prompts", "max_seconds": "--duration"}


@dataclass(frozen=True)
class Step:
    """One run of a job.

    Attributes:
        settings: The settings of the run; its records are saved beside the summary.
        strategy: Its load in guidellm's terms.
        summary: The path of the summary.
    """

    settings: RunSettings
    strategy: Strategy
    summary: Path


@dataclass(frozen=True)
class Job:
    """A benchmark job.

    Attributes:
        steps: The runs, one after the other.
        progress: The receiver of the progress, or None.
        max_errors: A run stops sending after this many failed requests; None: no limit.
        max_error_rate: A run stops sending, and fails, above this share of failed requests; None: no limit.
    """

    steps: tuple[Step, ...]
    progress: Receiver | None = None
    max_errors: int | None = None
    max_error_rate: float | None = None

    @classmethod
    def of(cls, given: dict[str, Any]) -> "Job":
        """Return the job of a command line.

        Args:
            given: What `arguments.parse` returns.

        Raises:
            BadInput: A flag is wrong or refused; nothing has been sent or written.
        """
        with renamed_flags():
            errors, share = given.get("max_errors"), given.get("max_error_rate")
            if errors is not None and errors < 1:
                raise BadInput(
                    "--max-errors", f"{errors} is out of range", "give 1 or more, or leave it out for no limit"
                )
            if share is not None and not 0 < share < 1:
                raise BadInput(
                    "--max-error-rate",
                    f"{share:g} is out of range",
                    "give a share between 0 and 1, or leave it out for no limit",
                )
            common = _scenario(given) | _target(given) | _data(given) | _display_settings(given)
            if "max_requests" in given:
                common["num_prompts"] = given["max_requests"]
            if "max_seconds" in given:
                common["duration"] = given["max_seconds"]
            if share is not None:
                common["max_error_rate"] = share
            output = _output(given)
            steps = _stages(given, common, output) if "stages" in given else (_single(given, common, output),)
            return cls(steps, _receiver(given), errors, share)


@contextlib.contextmanager
def renamed_flags(names: Mapping[str, str] = FLAG_NAMES) -> Iterator[None]:
    """Replace the flag that a BadInput names by its name here.

    Args:
        names: The names here, by the flags of `loadgen run`.
    """
    try:
        yield
    except BadInput as error:
        raise BadInput(names.get(error.field, error.field), error.problem, error.remedy) from error


def _scenario(given: dict[str, Any]) -> dict[str, Any]:
    if "scenario" not in given:
        return dict(presets.GPUSTACK)
    return presets.resolve(given["scenario"])


def _target(given: dict[str, Any]) -> dict[str, Any]:
    backend = dict(given.get("backend_kwargs", {}))
    url = given.get("target") or backend.pop("target", None)
    if not url:
        raise BadInput("--target", "missing", "name the server, for example http://127.0.0.1:8000")
    chat = given.get("request_type") != "text_completions"
    settings = {"base_url": url, "backend": "openai-chat" if chat else "openai"}
    settings["endpoint"] = CHAT_ENDPOINT if chat else COMPLETIONS_ENDPOINT
    if model := given.get("model") or backend.pop("model", None):
        settings["model"] = model
    if "processor" in given:
        settings["tokenizer"] = given["processor"]
    if unknown := set(given.get("processor_args", {})) - {"trust_remote_code"}:
        raise BadInput(f"--processor-args {min(unknown)}", "not supported", "leave it out")
    return settings | _backend(backend)


def _backend(given: dict[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for key, value in given.items():
        match key:
            case "timeout":  # in guidellm it bounds every read: the first one, and later silence
                patience = _number(value or 0, "--first-token-timeout")
                settings |= {"first_token_timeout": patience, "stall_timeout": patience}
            case "api_key":
                settings["api_key"] = value
            case "verify":
                settings["insecure"] = not value
            case "request_handlers" | "response_handlers" if _handled(value):
                pass
            case _:
                remedy = "leave it out: timeout, api_key, verify and the handlers of chat completions are supported"
                raise BadInput(f"--backend-kwargs {key}", f"{value!r} is not supported", remedy)
    return settings


def _handled(handlers: Any) -> bool:
    return isinstance(handlers, dict) and all(name in HANDLERS for name in (*handlers, *handlers.values()))


def _data(given: dict[str, Any]) -> dict[str, Any]:
    seed = given.get("random_seed")
    if "data" not in given:
        if "scenario" not in given:
            raise BadInput("--data", "missing", data.SYNTHETIC)
        return {} if seed is None else {"seed": seed}
    if len(given["data"]) > 1:
        raise BadInput("--data", "is given more than once", "give one, and run once for each")
    settings = data.fields(given["data"][0], SEED if seed is None else seed)
    if "sharegpt_max_output_tokens" in given:
        settings["sharegpt_output_len"] = given["sharegpt_max_output_tokens"]
    return settings


def _display_settings(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "quiet": given.get("disable_console", False),
        "disable_tqdm": given.get("disable_console_interactive", False),
    }


def _single(given: dict[str, Any], common: dict[str, Any], output: Path) -> Step:
    given_rates = [part for text in given.get("rate", ()) for part in text.split(",") if part.strip()]
    if len(given_rates) > 1:
        raise BadInput(
            "--rate", "has several values", "run them one after the other with --stages '[{\"rate\": 1}, ...]'"
        )
    kind = given.get("profile", "constant" if "scenario" in given else "sweep")
    if kind == "sweep":
        raise BadInput("--profile", "sweep is a search, and searches are not supported", arguments.NO_SEARCH)
    rate = _number(given_rates[0], "--request-rate") if given_rates else None
    return _step(given, common, (kind, rate), output)


def _stages(given: dict[str, Any], common: dict[str, Any], output: Path) -> tuple[Step, ...]:
    if "profile" in given:
        raise BadInput("--profile", "cannot be combined with --stages", "leave one of the two out")
    stages = given["stages"]
    if (
        not isinstance(stages, list)
        or not stages
        or not all(isinstance(s, dict) and s.get("rate") is not None for s in stages)
    ):
        raise BadInput("--stages", "is not a list of stages with a rate", 'write [{"rate": 1, "max_requests": 100}]')
    kind = "concurrent" if given.get("axis") == "concurrency" else "constant"
    further = given.get("seed_increment", True) and "random_seed" in given
    steps = []
    for number, stage in enumerate(stages):
        if unknown := set(stage) - set(STAGE):
            raise BadInput(f"--stages {min(unknown)}", "unknown key", f"choose from {', '.join(STAGE)}")
        own = common | ({"seed": common["seed"] + number} if further else {})
        path = output.with_name(f"{output.stem}__stage{number}.json")
        with renamed_flags({STAGE[key]: f"--stages {key}" for key, value in stage.items() if value is not None}):
            if stage.get("max_requests") is not None:
                own["num_prompts"] = _whole(stage["max_requests"], "--num-prompts")
            if stage.get("max_seconds") is not None:
                own["duration"] = _number(stage["max_seconds"], "--duration")
            steps.append(_step(given, own, (kind, _number(stage["rate"], "--request-rate")), path))
    return tuple(steps)


def _step(given: dict[str, Any], fields: dict[str, Any], how: tuple[str, float | None], summary: Path) -> Step:
    if fields.get("num_prompts") is None and fields.get("duration") is None:
        raise BadInput("--max-requests", "missing, and so is --max-seconds", "give at least one of the two")
    load, strategy = _load(how, given, fields)
    records = str(summary.with_suffix(".records.jsonl"))
    return Step(RunSettings(**fields | load | {"records": records}).checked(), strategy, summary)


def _load(
    how: tuple[str, float | None], given: dict[str, Any], fields: dict[str, Any]
) -> tuple[dict[str, Any], Strategy]:
    """Return the load as settings, and in guidellm's terms."""
    kind, rate = how
    cap = given.get("max_concurrency", presets.GPUSTACK["max_concurrency"])
    if kind in ("constant", "async", "poisson"):
        rate = fields.get("request_rate") if rate is None else rate
        if rate is None:
            raise BadInput("--request-rate", "missing", "give requests per second")
        rate = math.inf if rate == UNLIMITED else rate
        load = {"request_rate": rate, "burstiness": 1.0 if kind == "poisson" else math.inf, "max_concurrency": cap}
        return load, Strategy(kind, rate if math.isfinite(rate) else None, cap)
    if kind == "concurrent" and (rate is None or rate < 1 or not rate.is_integer()):
        raise BadInput(
            "--request-rate", f"{rate} is not a number of requests in flight", "give a whole number of 1 or more"
        )
    if kind != "concurrent" and rate is not None:
        raise BadInput(
            "--request-rate", f"cannot be combined with --profile {kind}, which has no rate", arguments.LEAVE_OUT
        )
    cap = {"synchronous": 1, "concurrent": int(rate or 0)}.get(kind, cap)
    return {"request_rate": math.inf, "burstiness": 1.0, "max_concurrency": cap}, Strategy(kind, rate, cap)


def _number(given: Any, field: str) -> float:
    try:
        return float(given)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(field, f"{given!r} is not a number", "give a number") from error


def _whole(given: Any, field: str) -> int:
    found = _number(given, field)
    if not found.is_integer():
        raise BadInput(field, f"{given!r} is not a whole number", "give a whole number")
    return int(found)


def _output(given: dict[str, Any]) -> Path:
    folder, names = Path(given.get("output_dir", ".")), given.get("outputs", [])
    if "output_path" in given:
        if "output_dir" in given:
            raise BadInput("--output-path", "cannot be combined with --output-dir", "leave one of the two out")
        path = Path(given["output_path"])
        folder, names = (path, names) if path.is_dir() else (path.parent, [path.name])
    names = [name for listed in names for name in listed.split(",")] or [DEFAULT_NAME]
    if len(names) > 1:
        raise BadInput(
            "--outputs", f"{len(names)} names are given", "give one name for the summary, for example 7.json"
        )
    name = DEFAULT_NAME if f".{names[0]}" in SUMMARIES else names[0]
    if not name.endswith(SUMMARIES):
        raise BadInput(
            "--outputs", f"{name} is not a name of a JSON file", "give a name for the summary, for example 7.json"
        )
    return folder / Path(name).with_suffix(".json")


def _receiver(given: dict[str, Any]) -> Receiver | None:
    if "progress_url" not in given:
        return None
    return Receiver(
        given["progress_url"],
        given.get("progress_auth"),
        given.get("progress_ca_cert"),
        given.get("progress_insecure_skip_tls_verify", False),
    )
