"""NoiseFile: the variation between starts of one configuration, saved for comparisons with too few starts."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from loadgen.analysis.compare.metrics import DEFAULT_METRICS
from loadgen.analysis.compare.side import MIN_STARTS, Side
from loadgen.analysis.compare.workload import HASHED_SETTINGS, OWN
from loadgen.errors import BadInput
from loadgen.stats.variance import Noise
from loadgen.util.files import write_atomic
from loadgen.util.number_format import plural

SCHEMA = 1


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
            BadInput: The starts are too few, some are INVALID or partial, or they are of different configurations.
        """
        if len(side.starts) < MIN_STARTS:
            remedy = f"give {MIN_STARTS} or more of the same configuration"
            raise BadInput("--save-noise", f"{side.path} has {plural(len(side.starts), 'start')}", remedy)
        if others := [run for run in side.starts if run.tool != OWN]:
            problem = f"{others[0].where} is a result of {others[0].tool}, whose workload is unknown"
            raise BadInput("--save-noise", problem, "give runs of loadgen")
        if side.unusable_runs:
            raise BadInput("--save-noise", side.unusable_runs[0], "leave that run out")
        if (differences := side.workload_differences + side.environment_differences) and not anyway:
            problem = f"the starts of {side.path} are not of one configuration: {', '.join(map(str, differences))}"
            raise BadInput("--save-noise", problem, "leave out those that differ, or add --anyway")
        values = {metric.name: side.scaled_values(metric) for metric in DEFAULT_METRICS}
        known = {name: each for name, each in values.items() if each is not None and np.isfinite(each).all()}
        noise = {name: Noise.of_replicates(each) for name, each in known.items()}
        return cls({name: each for name, each in noise.items() if each.sd > 0}, side.starts[0].workload)

    @classmethod
    def read(cls, path: str) -> "NoiseFile":
        """Read a file that `save` wrote.

        Raises:
            BadInput: It cannot be read, or is another kind of file.
        """
        try:
            data = orjson.loads(Path(path).read_bytes())
            if data["loadgen_noise"] != SCHEMA or not {*HASHED_SETTINGS, "requests"} <= data["workload"].keys():
                raise ValueError
            noise = {str(name): Noise(float(each["sd"]), int(each["df"])) for name, each in data["each"].items()}
            if not all(each.df > 0 and 0 <= each.sd < math.inf for each in noise.values()):
                raise ValueError
            return cls(noise, dict(data["workload"]))
        except OSError as error:
            raise BadInput("--noise", f"{path}: {error.strerror}", "name a file of --save-noise") from error
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise BadInput("--noise", f"{path} is not a noise file", "name a file of --save-noise") from error

    def save(self, path: str) -> None:
        """Write the file.

        Raises:
            OSError: It cannot be written.
        """
        each = {name: asdict(noise) for name, noise in self.noise.items()}
        data = {"loadgen_noise": SCHEMA, "each": each, "workload": self.workload}
        write_atomic(Path(path), orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() + "\n")
