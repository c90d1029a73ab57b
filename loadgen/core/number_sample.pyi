"""NumberSample: which requests of a run are in a sample of them."""

from collections.abc import Callable
from typing import final

@final
class NumberSample:
    """Numbers of requests, spread evenly over a run; number_sample.pyx says more."""

    def __init__(self, of: int, most: int, thinned: Callable[[], None]) -> None: ...
    def wants(self, index: int) -> bool: ...
    def take(self, index: int) -> bool: ...
