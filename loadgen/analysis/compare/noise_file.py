"""NoiseFile: what starts of one and the same thing differ by, kept to be used where there are too few starts."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from loadgen.analysis.compare.metrics import USUAL
from loadgen.analysis.compare.side import LEAST_STARTS, Side
from loadgen.analysis.compare.workload import BEHIND
from loadgen.errors import BadInput
from loadgen.stats.variance import Noise
from loadgen.util.atomic_file import write_atomic

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class NoiseFile:
    """Of each metric the noise of one start: of its logarithm, of a share the share's own.

    Attributes:
        each: By the name of the metric.
        workload: Of the starts.
    """

    each: Mapping[str, Noise]
    workload: Mapping[str, Any]

    @classmethod
    def of(cls, side: Side, *, anyway: bool = False) -> "NoiseFile":
        """What the starts of a side differ by; of metrics in which they do.

        Args:
            side: Which.
            anyway: Also where they are not of one thing.

        Raises:
            BadInput: They are too few, or some of them say nothing.
        """
        if len(side.starts) < LEAST_STARTS:
            count = f"{len(side.starts)} start{'s' * (len(side.starts) != 1)}"
            raise BadInput("--save-noise", f"{side.path} has {count}", f"give {LEAST_STARTS} or more of the same thing")
        if side.doubts:
            raise BadInput("--save-noise", side.doubts[0], "leave that run out")
        if (unlike := side.unlike + side.otherwise) and not anyway:
            problem = f"the starts of {side.path} are not of one thing: {', '.join(map(str, unlike))}"
            raise BadInput("--save-noise", problem, "leave out what is not, or add --anyway")
        levels = {metric.name: side.levels(metric) for metric in USUAL}
        told = {name: each for name, each in levels.items() if each is not None and np.isfinite(each).all()}
        each = {name: Noise.of_replicates(one) for name, one in told.items()}
        return cls({name: noise for name, noise in each.items() if noise.sd > 0}, side.starts[0].workload)

    @classmethod
    def read(cls, path: str) -> "NoiseFile":
        """From where `save` put it.

        Raises:
            BadInput: It cannot be read, or is something else.
        """
        try:
            told = orjson.loads(Path(path).read_bytes())
            if told["loadgen_noise"] != SCHEMA or not {*BEHIND, "requests"} <= told["workload"].keys():
                raise ValueError
            each = {str(name): Noise(float(one["sd"]), int(one["df"])) for name, one in told["each"].items()}
            if not all(noise.df > 0 and 0 <= noise.sd < math.inf for noise in each.values()):
                raise ValueError
            return cls(each, dict(told["workload"]))
        except OSError as error:
            raise BadInput("--noise", f"{path}: {error.strerror}", "name a file of --save-noise") from error
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise BadInput("--noise", f"{path} holds no noise", "name a file of --save-noise") from error

    def save(self, path: str) -> None:
        """Write it.

        Raises:
            OSError: It cannot be written.
        """
        each = {name: asdict(noise) for name, noise in self.each.items()}
        told = {"loadgen_noise": SCHEMA, "each": each, "workload": self.workload}
        write_atomic(Path(path), orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n")
