"""ConfidenceInterval of the difference between two sides, and the sources of noise that it is
computed from.

A `NoiseFile` is the variation between starts of one configuration, saved for comparisons with too
few starts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from loadgen.analysis.compare.metrics import DEFAULT_METRICS, Metric
from loadgen.analysis.compare.run_requests import RunRequests, Scheme
from loadgen.analysis.compare.side import MIN_STARTS, Side
from loadgen.analysis.compare.workload import HASHED_SETTINGS, OWN
from loadgen.errors import BadInput, setting
from loadgen.stats import distributions
from loadgen.stats.batch_means import BatchMeans
from loadgen.stats.variance import Noise
from loadgen.util.arrays import Floats
from loadgen.util.files import write_atomic
from loadgen.util.number_format import plural

CONFIDENCE = 0.95
SCHEMA = 1
MAX_STARTS = 100  # of a side, that one may be asked for


class Basis(StrEnum):
    """The source of the noise."""

    STARTS = "starts"  # the variation between the starts of each side
    NOISE = "noise"  # the same, pooled with a noise file
    # The variation between starts is unknown.
    WITHIN = "within the run"  # the variation between requests
    BATCHES = "batches"  # the variation between parts of the run

    @property
    def is_of_starts(self) -> bool:
        """Whether it contains the variation between starts."""
        return self in (Basis.STARTS, Basis.NOISE)


@dataclass(frozen=True, slots=True)
class StartNoise:
    """What the interval of a difference by starts was made of, to plan further starts.

    Attributes:
        noise: The variation between starts.
        rounding: Rounding error of the difference.
        starts: Number of starts of both sides together.
    """

    noise: Noise
    rounding: float
    starts: int

    def starts_to_tell(self, distance: float) -> int | None:
        """Return with how many starts of each side the interval would reach less far than a
        distance from its middle, were middle and noise as they are; None: more than MAX_STARTS.
        """
        for starts in range(max(2, self.starts // 2), MAX_STARTS + 1):
            df = self.noise.df + 2 * starts - self.starts
            error = math.hypot(self.noise.sd * math.sqrt(2 / starts), self.rounding)
            if distributions.student_two_sided_quantile(1 - CONFIDENCE, df) * error < distance:
                return starts
        return None


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """Student's interval of a difference, in logarithms or shares (`Side.scaled_values`).

    Attributes:
        low: Lower bound; both bounds hold together with CONFIDENCE.
        high: Upper bound.
        basis: The source of the noise.
        p_value: Two-sided, of no difference.
        start_noise: Of an interval by starts, the variation between them; None of others.
    """

    low: float
    high: float
    basis: Basis
    p_value: float
    start_noise: StartNoise | None = None

    @classmethod
    def of(
        cls,
        difference: float,
        error: float,
        df: float,
        basis: Basis,
        start_noise: StartNoise | None = None,
    ) -> "ConfidenceInterval":
        """Return the interval of a difference by its standard error and degrees of freedom."""
        half_width = distributions.student_two_sided_quantile(1 - CONFIDENCE, df) * error
        t = abs(difference) / error if error else math.inf if difference else 0.0
        return cls(
            difference - half_width,
            difference + half_width,
            basis,
            distributions.student_two_sided_p(t, df),
            start_noise,
        )

    @property
    def excludes_zero(self) -> bool:
        """Whether the difference is significant by this interval alone."""
        return self.low > 0 or self.high < 0


def rounding_error(baseline: float, candidate: float) -> float:
    """Return the standard error of a difference of two values in ranges of these widths (JCGM
    100:2008, F.2.2.1).
    """
    return math.sqrt((baseline * baseline + candidate * candidate) / 12)


def interval_by_starts(
    baseline: Floats, candidate: Floats, kept: Noise | None = None, rounding: float = 0.0
) -> ConfidenceInterval:
    """Return the interval by the variation between starts, taken to be of the same size on both
    sides.

    Args:
        baseline: Scaled values of the starts, shape (n,).
        candidate: Scaled values of the starts, shape (m,).
        kept: Noise of a noise file, which is pooled with that of the starts. Without it some side
            has two starts.
        rounding: Rounding error of the difference.
    """
    noises = [Noise.of_replicates(values) for values in (baseline, candidate)]
    noise = Noise.pooled(noises if kept is None else [kept, *noises])
    assert noise is not None
    error = math.hypot(noise.sd * math.sqrt(1 / len(baseline) + 1 / len(candidate)), rounding)
    basis = Basis.STARTS if kept is None else Basis.NOISE
    difference = float(candidate.mean() - baseline.mean())
    planned = StartNoise(noise, rounding, len(baseline) + len(candidate))
    return ConfidenceInterval.of(difference, error, noise.df, basis, planned)


def interval_within_run(
    baseline: Sequence[RunRequests],
    candidate: Sequence[RunRequests],
    metric: Metric,
    difference: float,
    scheme: Scheme,
    rounding: float = 0.0,
) -> ConfidenceInterval | None:
    """Return the interval by the variation between requests; None if they are too few for the
    metric.

    Args:
        baseline: The runs of the baseline.
        candidate: The runs of the candidate.
        metric: That is compared.
        difference: Candidate minus baseline, in scaled values.
        scheme: How replicates are made.
        rounding: Rounding error of the difference.
    """
    replicates = [_resample_side(runs, metric, scheme) for runs in (baseline, candidate)]
    if replicates[0] is None or replicates[1] is None:
        return None
    count = min(run.count for run in (*baseline, *candidate))
    error, df = scheme.standard_error(replicates[1] - replicates[0], count)
    if not math.isfinite(error):
        return None
    basis = Basis.BATCHES if isinstance(scheme, BatchMeans) else Basis.WITHIN
    return ConfidenceInterval.of(difference, math.hypot(error, rounding), df, basis)


def _resample_side(runs: Sequence[RunRequests], metric: Metric, scheme: Scheme) -> Floats | None:
    replicates = [run.resample(metric, scheme, seed) for seed, run in enumerate(runs)]
    complete = [replicate for replicate in replicates if replicate is not None]
    if len(complete) < len(replicates):
        return None
    values = np.array(complete)
    if not metric.is_share:
        if not (values > 0).all():  # false for NaN too
            return None
        values = np.log(values)
    mean: Floats = values.mean(axis=0)
    return mean


@dataclass(frozen=True, slots=True)
class NoiseFile:
    """Noise of one start for each metric: of its logarithm, for a share of the share itself.

    Attributes:
        noise: By the name of the metric.
        workload: The workload of the starts.
    """

    noise: Mapping[str, Noise]
    workload: Mapping[str, Any]

    @classmethod
    def of(cls, side: Side, *, anyway: bool = False) -> "NoiseFile":
        """Estimate the noise from the starts of a side, for the metrics that vary.

        Args:
            side: With MIN_STARTS or more.
            anyway: Accept starts of different configurations.

        Raises:
            BadInput: The starts are too few, some are INVALID or partial, or they are of different
                configurations.
        """
        if len(side.starts) < MIN_STARTS:
            remedy = f"give {MIN_STARTS} or more of the same configuration"
            raise BadInput(
                setting.save_noise, f"{side.path} has {plural(len(side.starts), 'start')}", remedy
            )
        if others := [run for run in side.starts if run.tool != OWN]:
            problem = (
                f"{others[0].where} is a result of {others[0].tool}, whose workload is unknown"
            )
            raise BadInput(setting.save_noise, problem, "give runs of loadgen")
        if side.unusable_runs:
            raise BadInput(setting.save_noise, side.unusable_runs[0], "leave that run out")
        if (differences := side.workload_differences + side.environment_differences) and not anyway:
            problem = (
                f"the starts of {side.path} are not of one configuration: "
                f"{', '.join(map(str, differences))}"
            )
            raise BadInput(
                setting.save_noise, problem, f"leave out those that differ, or add {setting.anyway}"
            )
        values = {metric.name: side.scaled_values(metric) for metric in DEFAULT_METRICS}
        noise: dict[str, Noise] = {}
        for name, scaled in values.items():
            if scaled is not None and np.isfinite(scaled).all():
                of_metric = Noise.of_replicates(scaled)
                if of_metric.sd > 0:
                    noise[name] = of_metric
        return cls(noise, side.starts[0].workload)

    @classmethod
    def read(cls, path: str) -> "NoiseFile":
        """Read a file that `save` wrote.

        Raises:
            BadInput: It cannot be read, or is another kind of file.
        """
        try:
            data = orjson.loads(Path(path).read_bytes())
            if (
                data["loadgen_noise"] != SCHEMA
                or not {*HASHED_SETTINGS, "requests"} <= data["workload"].keys()
            ):
                raise ValueError
            noise = {
                str(name): Noise(float(saved["sd"]), int(saved["df"]))
                for name, saved in data["each"].items()
            }
            if not all(metric.df > 0 and 0 <= metric.sd < math.inf for metric in noise.values()):
                raise ValueError
            return cls(noise, dict(data["workload"]))
        except OSError as error:
            raise BadInput(
                setting.noise, f"{path}: {error.strerror}", f"name a file of {setting.save_noise}"
            ) from error
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise BadInput(
                setting.noise, f"{path} is not a noise file", f"name a file of {setting.save_noise}"
            ) from error

    def save(self, path: str) -> None:
        """Write the file.

        Raises:
            OSError: It cannot be written.
        """
        noise = {name: asdict(metric) for name, metric in self.noise.items()}
        data = {"loadgen_noise": SCHEMA, "each": noise, "workload": self.workload}
        write_atomic(Path(path), orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() + "\n")
