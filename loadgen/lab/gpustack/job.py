"""A command line of benchmark-runner, as runs of loadgen that follow one another, or as a search."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.config import presets
from loadgen.config.option import ABOVE_0, BELOW_1, Range
from loadgen.errors import BadInput
from loadgen.lab.gpustack import data, profile, steps, target
from loadgen.lab.gpustack.auto_tune import AutoTune
from loadgen.lab.gpustack.flag_names import renamed_flags
from loadgen.lab.gpustack.progress import Receiver
from loadgen.lab.gpustack.steps import Step
from loadgen.lab.gpustack.transient import NO_TRANSIENTS, Transients

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
        max_error_rate: A run stops sending, and fails, above this share of failed requests; None: no limit.
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
    def of(cls, given: dict[str, Any]) -> "Job":
        """Return the job of a command line.

        Raises:
            BadInput: A flag is wrong or refused; nothing has been sent or written.
        """
        with renamed_flags():
            flags, settings = profile.resolve(given["scenario"]) if "scenario" in given else ({}, {})
            given = flags | given
            errors, share = given.get("max_errors"), given.get("max_error_rate")
            MAX_ERRORS.check("--max-errors", errors)
            MAX_ERROR_RATE.check("--max-error-rate", share)
            common = presets.GPUSTACK | settings | target.settings_of(given) | _data(given)
            common |= {field: given[name] for name, field in FIELDS.items() if name in given}
            output = _output(given)
            search = AutoTune.of(given, common, output)
            runs: tuple[Step, ...] = ()
            if search is None:
                in_stages = "stages" in given
                runs = steps.stages(given, common, output) if in_stages else (steps.single(given, common, output),)
            return cls(
                runs,
                search,
                output,
                axis=given.get("axis", "rate"),
                phases=Transients.of(given),
                progress=_receiver(given),
                max_errors=errors,
                max_error_rate=share,
                detect_saturation=given.get("detect_saturation", False),
            )

    @property
    def has_stages(self) -> bool:
        """Whether it is a list of stages, each of which has a summary of its own."""
        return any(step.summary != self.output for step in self.steps)


def _data(given: dict[str, Any]) -> dict[str, Any]:
    seed = given.get("random_seed")
    if "data" not in given:
        if "scenario" not in given:
            raise BadInput("--data", "missing", data.SYNTHETIC)
        return {} if seed is None else {"seed": seed}
    if len(given["data"]) > 1:
        raise BadInput("--data", "is given more than once", "give one, and run once for each")
    settings = data.fields(given["data"][0], SEED if seed is None else seed)
    low, high = given.get("sharegpt_min_input_tokens"), given.get("sharegpt_max_input_tokens")
    if low is not None or high is not None:
        settings["sharegpt_input_len"] = f"{'' if low is None else low}:{'' if high is None else high}"
    if "sharegpt_max_output_tokens" in given:
        settings["sharegpt_output_len"] = given["sharegpt_max_output_tokens"]
    return settings


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
