"""Events written at set times."""

from asyncio import Transport
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from loadgen.engines.sim.outlet import Outlet

BLANK_TIME: bytes

class Planned(Outlet):
    """One response body whose events are written at set times."""

    written: int
    def __init__(
        self,
        transport: Transport,
        event: bytes,
        after: bytes,
        plan_ns: NDArray[np.int64],
        write_ns: NDArray[np.int64],
        written_ns: NDArray[np.int64],
        *,
        limit: int = 4194304,
    ) -> None: ...

class Ticker:
    """Writes what many `Planned` streams have due."""

    def __init__(self, on_end: Callable[[Planned], object]) -> None: ...
    def add(self, stream: Planned) -> int: ...
    def tick(self) -> int: ...

def live() -> dict[str, int] | None: ...
