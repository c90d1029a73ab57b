"""The settings that say which prompts are sent: the data set and what it takes."""

from dataclasses import dataclass
from typing import Literal

from loadgen.options import DATA, option, require

Rule = Literal["vllm-0.11", "vllm-0.9", "guidellm-0.5", "benchmark-runner"]
FULL_LENGTH: tuple[Rule, ...] = ("guidellm-0.5", "benchmark-runner")  # rules whose tools ask the server to ignore EOS


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """What is asked; names and meanings are `vllm bench serve`'s. Lengths are tokens."""

    workload: str | None = option(
        None, DATA, "preset name or YAML profile; flags given beside it win", metavar="NAME|FILE"
    )
    dataset_name: str = option("random", DATA, "random or sharegpt, or one that a package adds", metavar="NAME")
    dataset_path: str | None = option(None, DATA, "file of the data set", metavar="FILE")
    dataset_rule: Rule | None = option(
        None, DATA, "make the prompts as another tool did, to compare with what it published (the data set's own rule)"
    )
    random_input_len: int = option(1024, DATA, "tokens of a random prompt", metavar="TOKENS")
    random_output_len: int = option(128, DATA, "tokens asked of each answer", metavar="TOKENS")
    random_range_ratio: str = option(
        "0.0", DATA, 'lengths are drawn from [len*(1-r), len*(1+r)]; a number or {"input": r, "output": r}', metavar="R"
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
            require(name, getattr(self, name), lambda v: v >= 1, "1 token or more")
        require("random_prefix_len", self.random_prefix_len, lambda v: v >= 0, "0 tokens or more")
