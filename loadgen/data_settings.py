"""The settings that say which prompts are sent: the data set and what it takes."""

import math
from dataclasses import dataclass
from typing import Literal

from loadgen.options import DATA, option, require

Rule = Literal["vllm-0.11", "vllm-0.9", "guidellm-0.5", "benchmark-runner"]
FULL_LENGTH: tuple[Rule, ...] = ("guidellm-0.5", "benchmark-runner")  # rules whose tools ask the server to ignore EOS
TRACE = "trace"  # the data set that says when each request is due
MULTI_TURN = "multi_turn"  # one of sessions whatever --turns says


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """What is asked; names and meanings are `vllm bench serve`'s. Lengths are tokens."""

    workload: str | None = option(
        None, DATA, "preset name or YAML profile; flags given beside it win", metavar="NAME|FILE"
    )
    dataset_name: str = option(
        "random", DATA, "random, sharegpt, multi_turn or trace, or one that a package adds", metavar="NAME"
    )
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
    turns: str | None = option(
        None, DATA, "turns of a session: a number, or all of a conversation (sharegpt 1, multi_turn 3)", metavar="N|all"
    )
    think_time: str = option(
        "0", DATA, "seconds from the end of an answer to the next turn: a number, or exp:MEAN", metavar="SECONDS"
    )
    history: Literal["real", "recorded"] = option(
        "real", DATA, "whose answers further turns repeat: those of this server, or those of the data set"
    )
    trace_format: Literal["auto", "mooncake", "burstgpt", "azure"] = option("auto", DATA, "whose trace it is")
    time_scale: float = option(1.0, DATA, "send a trace so many times as fast", metavar="FACTOR")

    @property
    def timed_by_data(self) -> bool:
        """Whether only the data set knows how many requests begin at what rate: sessions, or a trace."""
        return self.dataset_name in (TRACE, MULTI_TURN) or self.turns not in (None, "1")

    def check_data(self) -> None:
        """Refuse what no data set can use; each refuses for itself what it cannot.

        Raises:
            BadInput: The first value that cannot be used.
        """
        for name in ("random_input_len", "random_output_len", "sharegpt_output_len"):
            require(name, getattr(self, name), lambda v: v >= 1, "1 token or more")
        require("time_scale", self.time_scale, lambda v: 0 < v < math.inf, "a number above 0")
        require("random_prefix_len", self.random_prefix_len, lambda v: v >= 0, "0 tokens or more")
