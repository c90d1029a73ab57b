"""`Adapters`: the LoRA adapter of each request."""

import hashlib
import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

from loadgen.config.lora import parse_skew
from loadgen.config.settings import RunSettings, seed_of
from loadgen.workload.prompt import Prompt


@dataclass(frozen=True, slots=True)
class Adapters:
    """LoRA adapters that share the requests: in turn, or each request draws one.

    Attributes:
        names: Their names, as the server knows them; at least one.
        bounds: The upper bound of each adapter in the draws from 0 to 1, ascending; empty: they take turns.
        seed: The seed of the draws.
    """

    names: tuple[str, ...]
    bounds: tuple[float, ...]
    seed: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self | None:
        """Create the adapters of `--lora-modules` and `--lora-assignment`; None without adapters.

        Raises:
            BadInput: The assignment is invalid.
        """
        if not settings.lora_modules:
            return None
        bounds: tuple[float, ...] = ()
        if (skew := parse_skew(settings.lora_assignment)) is not None:
            sums = list(itertools.accumulate(skew**-place for place in range(len(settings.lora_modules))))
            bounds = tuple(each / sums[-1] for each in sums)
        return cls(settings.lora_modules, bounds, seed_of(settings, "order"))

    def of(self, index: int) -> str:
        """Return the adapter of request `index`. It depends on nothing but the index, the seed and the shares."""
        if not self.bounds:
            return self.names[index % len(self.names)]
        drawn = hashlib.blake2b(b"lora/%d/%d" % (self.seed, index), digest_size=6).digest()
        return self.names[bisect_right(self.bounds, int.from_bytes(drawn) / 2**48)]

    def assigned(self, prompts: Iterable[Prompt], first: int = 0) -> Iterator[Prompt]:
        """Yield the prompts, each with the adapter of its request; `first` is the index of the first one."""
        for index, prompt in enumerate(prompts, first):
            yield replace(prompt, model=self.of(index))
