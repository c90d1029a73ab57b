"""Estimates of how long starts and workloads take before anything is measured, each with its
basis.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadgen.analysis.search.criteria import RequestShare
from loadgen.analysis.search.search_bounds import RUN_S
from loadgen.config.settings import RunSettings
from loadgen.engines import Launch
from loadgen.engines.kinds import simulator

# Engine and model -> seconds on this machine; None: never started here.
UsualStart = Callable[[str, str], float | None]
# Rows of (billions of parameters up to which it holds, shortest, longest usual seconds until an
# engine answers).
STARTS: dict[str, tuple[tuple[float, float, float], ...]] = {
    "vllm": ((40, 60, 300), (300, 180, 600), (math.inf, 600, 1800)),
    "sglang": ((40, 30, 180), (300, 180, 600), (math.inf, 600, 1800)),
    "trtllm": ((40, 120, 300), (300, 180, 600), (math.inf, 600, 1800)),
    "mindie": ((40, 60, 300), (300, 180, 600), (math.inf, 600, 1800)),
    "llamacpp": ((1, 0.3, 5), (40, 3, 60), (math.inf, 30, 600)),
    "transformers": ((1, 5, 30), (40, 20, 180), (math.inf, 60, 1200)),
    "sim": ((math.inf, 0.1, 1),),
}
ANY_ENGINE = ((40.0, 60.0, 300.0), (math.inf, 180.0, 1800.0))
# Published results of five models from 9 to 235 billion parameters, input and output tokens, all at
# once.
# Of one accelerator: tokens/s times billions of parameters.
TOKENS_BILLIONS_PER_S = (50_000.0, 300_000.0)
TOKEN_GAP_S = (0.02, 0.12)  # between two tokens of an answer, where few requests run at once
# The same for the last answer of a load at a rate that the server keeps up with.
LAST_GAP_S = (0.005, 0.08)
# Mean prompt and answer of a thousand conversations of ShareGPT, by the rule that chooses them.
SHAREGPT_TOKENS = {"vllm-0.11": (217, 202), "benchmark-runner": (342, 281)}


@dataclass(frozen=True, slots=True)
class Span:
    """An estimated time.

    Attributes:
        min_s: Shortest usual time.
        max_s: Longest usual time.
        basis: Source of the estimate, in words.
    """

    min_s: float
    max_s: float
    basis: str


@dataclass(frozen=True, slots=True)
class Effort:
    """The resolution of a search and the number of runs that it takes.

    Attributes:
        resolution: The lowest rate that fails is at most this share above the highest that does
            not.
    """

    resolution: float

    BRACKETING = 2  # runs, if the first rate is near
    SPARE = (
        8  # runs, for a first rate that is far away and for rates whose first run is inconclusive
    )

    @classmethod
    def for_effect(cls, least_effect: float) -> "Effort":
        """Return the effort for the least effect that a study looks for, with a resolution from 1
        to 5 %.

        The standard error of a rate is its resolution over the root of 12. Runs vary by more than 1
        %, so finer steps would show nothing; and steps above 5 % save less than one run.
        """
        return cls(min(0.05, max(0.01, least_effect)))

    @property
    def halvings(self) -> int:
        """Rates tried between one that meets its limits and twice that rate, which does not."""
        return math.ceil(math.log2(math.log(2) / math.log1p(self.resolution)))

    @property
    def min_runs(self) -> int:
        """Runs if each is conclusive and the first rate is near."""
        return self.BRACKETING + self.halvings

    @property
    def max_runs(self) -> int:
        """Maximum number of runs."""
        return self.SPARE + 2 * self.halvings


def billions(model: str) -> float | None:
    """Read the parameters in billions from a model's name: Qwen3-235B-A22B -> 235; None: the
    name has no size.
    """
    size = re.search(r"(?<![\d.A-Za-z])(\d+(?:\.\d+)?)([bBmM])(?![A-Za-z])", model)
    return None if size is None else float(size[1]) * (1.0 if size[2] in "bB" else 1e-3)


def start(engine: str, model: str, usual_s: UsualStart) -> Span:
    """Estimate the time until a server answers.

    Args:
        engine: Name of the engine.
        model: Name of the model, which gives its size.
        usual_s: Returns how long servers have taken to start on this machine.
    """
    measured = usual_s(engine, model)
    if measured is not None:
        return Span(measured, measured, "measured on this machine")
    rows = STARTS.get(engine) or STARTS.get(engine.partition("-")[0]) or ANY_ENGINE
    size = billions(model)
    if size is None:
        return Span(rows[0][1], rows[-1][2], "usual for any size")
    _, shortest, longest = next(row for row in rows if size <= row[0])
    return Span(shortest, longest, f"usual for {size:g} billion parameters")


def simulated_start(launch: Launch, usual: Span) -> Span:
    """Add a simulator's own time to the usual time until it answers.

    Args:
        launch: How it is started.
        usual: The usual time.
    """
    engine = simulator.settings_of(launch)
    if engine is None or not engine.startup_s:
        return usual
    least_s, most_s = (engine.startup_s + time_s for time_s in (usual.min_s, usual.max_s))
    return Span(least_s, most_s, f"--startup-s, and {usual.basis}")


def load(settings: RunSettings, model: str, devices: int) -> Span | None:
    """Estimate the time of a run of a workload; None: unknown.

    Args:
        settings: Settings of the run.
        model: Name of the model, which gives its size.
        devices: Accelerators that compute; 0: none.
    """
    if settings.duration is not None and settings.num_prompts is None:
        return Span(settings.duration, settings.duration, "its duration")
    requests = settings.num_prompts or 1000
    due_s = (
        requests - 1
    ) / settings.request_rate  # when the last one is due: 0 where all are due at once
    size = billions(model)
    lengths = tokens(settings)
    if size is None or lengths is None or devices == 0:
        return (
            Span(due_s, due_s, "requests over their rate, if the server keeps up")
            if due_s
            else None
        )
    slow, fast = (speed * devices / size for speed in TOKENS_BILLIONS_PER_S)
    basis = (
        f"{requests} requests of {sum(lengths):,} tokens at {slow:,.0f} to {fast:,.0f} tok/s, "
        f"usual for {size:g}B"
    )
    times = [requests * sum(lengths) / speed for speed in (fast, slow)]
    cap = settings.max_concurrency
    if cap is not None and math.isinf(settings.request_rate):
        decoding = [requests * lengths[1] * gap / cap for gap in TOKEN_GAP_S]
        if decoding[0] > times[0]:
            times = decoding
            basis = (
                f"{requests} answers of {lengths[1]} tokens, {cap} at a time, 20 to 120 ms a token"
            )
    at_rate = [due_s + lengths[1] * gap for gap in LAST_GAP_S] if due_s else [0.0, 0.0]
    if at_rate[0] > times[0]:
        basis = (
            f"{requests} requests at {settings.request_rate:g} a second and the last answer of "
            f"{lengths[1]} tokens, 5 to 80 ms a token, more if the server does not keep up"
        )
    return Span(max(at_rate[0], times[0]), max(at_rate[1], times[1]), basis)


def simulated(settings: RunSettings, launches: Sequence[Launch]) -> Span | None:
    """Estimate the time of a run of a workload by the costs of simulators; None: unknown.

    Args:
        settings: Settings of the run.
        launches: How the simulators are started, which share the requests.
    """
    lengths = tokens(settings)
    engine = simulator.settings_of(launches[0])
    timed = settings.duration is not None and settings.num_prompts is None
    if timed or lengths is None or engine is None:
        return load(settings, "", 0)
    from loadgen.engines.sim.capacity import closed_load_s  # slow to import

    prompt = lengths[0] + (launches[0].template_tokens or 0)
    requests = settings.num_prompts or 1000
    share = math.ceil(requests / len(launches))
    in_flight = math.ceil((settings.max_concurrency or requests) / len(launches))
    least_s, most_s = closed_load_s(engine, share, in_flight, prompt, max(1, lengths[1]))
    due_s = (requests - 1) / settings.request_rate
    basis = f"{requests} requests of {sum(lengths):,} tokens by the simulator's costs"
    return Span(max(least_s, due_s), max(least_s, due_s) + most_s - least_s, basis)


def searched(span: Span, limits: RequestShare, effort: Effort) -> Span:
    """Add the search for the highest rate that meets the limits to the estimate of a workload."""
    runs = f"{effort.min_runs} to {effort.max_runs} runs"
    basis = f"{span.basis}; then {runs} of {RUN_S:g} s, or of {limits.min_requests} requests"
    return Span(span.min_s + effort.min_runs * RUN_S, span.max_s + effort.max_runs * RUN_S, basis)


def tokens(settings: RunSettings) -> tuple[int, int] | None:
    """Return the mean tokens of a prompt and of its answer; None: only the data set knows."""
    if settings.dataset_name == "sharegpt" and not settings.timed_by_data:
        prompt, answer = SHAREGPT_TOKENS.get(
            settings.dataset_rule or "", SHAREGPT_TOKENS["vllm-0.11"]
        )
        return prompt, settings.sharegpt_output_len or answer
    lengths = settings.random_input_len, settings.random_output_len
    if (
        settings.dataset_name == "random"
        and isinstance(lengths[0], int)
        and isinstance(lengths[1], int)
    ):
        return lengths[0] + settings.random_prefix_len, lengths[1]
    return None
