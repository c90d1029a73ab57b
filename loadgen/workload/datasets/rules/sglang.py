"""The rule `sglang`: conversations as SGLang's `bench_serving` chooses them."""

import math
from typing import ClassVar

from loadgen.workload.datasets.sharegpt import ShareGPTDataset


class SGLangShareGPT(ShareGPTDataset):
    """Conversations of at least two turns, whose first two have two tokens or more each; lengths are not limited."""

    __slots__ = ()
    RULE: ClassVar[str] = "sglang"
    HAS_IMAGES: ClassVar[bool] = False
    MIN_TOKENS: ClassVar[int] = 2
    MAX_PROMPT_TOKENS: ClassVar[float] = math.inf
    MAX_TOTAL_TOKENS: ClassVar[float] = math.inf
