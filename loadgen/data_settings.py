"""The settings that say which prompts are sent: the data set and what it takes."""

from dataclasses import dataclass
from typing import Literal

from loadgen.options import DATA, option, require


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """What is asked; names and meanings are `vllm bench serve`'s. Lengths are tokens."""

    workload: str | None = option(
        None, DATA, "preset name or YAML profile; flags given beside it win", metavar="NAME|FILE"
    )
    dataset_name: str = option("random", DATA, "random or sharegpt, or one that a package adds", metavar="NAME")
    dataset_path: str | None = option(None, DATA, "file of the data set", metavar="FILE")
    random_input_len: int | str = option(
        1024,
        DATA,
        "tokens of a random prompt: a number, 900:1100, normal:MEAN:STDEV[:MIN:MAX], lognormal:..., a list as 10,20, "
        "or the @FILE that holds one",
        metavar="TOKENS",
    )
    random_output_len: int | str = option(128, DATA, "tokens asked of each answer, written likewise", metavar="TOKENS")
    random_range_ratio: str = option(
        "0.0",
        DATA,
        'draw a length that is one number from [len*(1-r), len*(1+r)]; R or {"input": r, "output": r}; the opposite '
        "of SGLang's flag, which means [len*r, len]",
        metavar="R",
    )
    input_len_counts: Literal["raw", "server"] = option(
        "raw",
        DATA,
        "whose tokens the length of a random prompt is: its text's alone, or all that the server counts, those of the "
        "chat template too",
    )
    random_prefix_len: int = option(0, DATA, "tokens of a prefix that all random prompts share", metavar="TOKENS")
    sharegpt_output_len: int | None = option(
        None, DATA, "ask this many tokens instead of the recorded answer's", metavar="TOKENS"
    )

    def check_data(self) -> None:
        """Refuse what no data set can use; each refuses for itself what it cannot.

        Raises:
            BadInput: The first value that cannot be used.
        """
        for name in ("random_input_len", "random_output_len", "sharegpt_output_len"):
            if not isinstance(getattr(self, name), str):
                require(name, getattr(self, name), lambda v: v >= 1, "1 token or more")
        require("random_prefix_len", self.random_prefix_len, lambda v: v >= 0, "0 tokens or more")
