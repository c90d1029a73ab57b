"""The settings that say which prompts are sent: the data set and what it takes."""

from dataclasses import dataclass
from typing import Literal

from loadgen.config.option import DATA, option, require

Rule = Literal["vllm-0.11", "vllm-0.9", "guidellm-0.5", "benchmark-runner"]
FULL_LENGTH: tuple[Rule, ...] = ("guidellm-0.5", "benchmark-runner")  # rules whose tools ask the server to ignore EOS
TRACE = "trace"  # the data set that says when each request is due
NO_TOKENIZER = "none"  # as --tokenizer: prompts are sent as they are, and nobody counts them but the server
MULTI_TURN = "multi_turn"  # one of sessions whatever --turns says


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """What is asked; names and meanings are `vllm bench serve`'s. Lengths are tokens."""

    workload: str | None = option(
        None, DATA, "preset name or YAML profile; flags given beside it win", metavar="NAME|FILE"
    )
    dataset_name: str = option(
        "random",
        DATA,
        "random, prefix_repetition, multi_turn, sharegpt, trace, prose (also sonnet), jsonl, csv, custom, hf, or one "
        "that a package adds",
        metavar="NAME",
    )
    dataset_path: str | None = option(None, DATA, "file of the data set, or its name on the hub", metavar="FILE|NAME")
    dataset_rule: Rule | None = option(
        None, DATA, "make the prompts as another tool did, to compare with what it published (the data set's own rule)"
    )
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
    random_prefix_len: int = option(0, DATA, "tokens of a prefix that all random prompts share", metavar="TOKENS")
    input_len_counts: Literal["raw", "server"] = option(
        "raw",
        DATA,
        "whose tokens the length of a prompt of random or prefix_repetition is: its text's alone, or all that the "
        "server counts, those of the chat template too",
    )
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
    prefix_repetition_prefix_len: int = option(256, DATA, "tokens of each repeated prefix", metavar="TOKENS")
    prefix_repetition_suffix_len: int = option(256, DATA, "tokens that follow a repeated prefix", metavar="TOKENS")
    prefix_repetition_num_prefixes: int = option(10, DATA, "repeated prefixes", metavar="N")
    prefix_repetition_output_len: int = option(128, DATA, "tokens asked of each answer", metavar="TOKENS")
    sonnet_input_len: int = option(550, DATA, "tokens of a prompt of prose", metavar="TOKENS")
    sonnet_output_len: int = option(150, DATA, "tokens asked of each answer", metavar="TOKENS")
    sonnet_prefix_len: int = option(200, DATA, "tokens of it that all prompts of prose share", metavar="TOKENS")
    custom_output_len: int = option(
        256,
        DATA,
        "tokens asked where a row of jsonl, csv or custom does not say (256; -1: each says)",
        metavar="TOKENS",
    )
    disable_shuffle: bool = option(False, DATA, "custom in the file's order")
    hf_subset: str | None = option(None, DATA, "subset of a data set on the hub", metavar="NAME")
    hf_split: str = option("train", DATA, "split of a data set on the hub", metavar="NAME")
    hf_output_len: int | None = option(
        None, DATA, "ask this many tokens instead of the recorded answer's", metavar="TOKENS"
    )
    hf_column: tuple[str, ...] = option(
        (), DATA, "what a data set on the hub calls prompt, messages, answer, ...", metavar="FIELD=COLUMN"
    )

    @property
    def timed_by_data(self) -> bool:
        """Whether only the data set knows how many requests begin at what rate: sessions, or a trace."""
        return self.dataset_name in (TRACE, MULTI_TURN) or self.turns not in (None, "1")

    def check_data(self) -> None:
        """Refuse what no data set can use; each refuses for itself what it cannot.

        Raises:
            BadInput: The first value that cannot be used.
        """
        for name in ("random_input_len", "random_output_len"):
            if not isinstance(getattr(self, name), str):
                require(name, getattr(self, name), lambda v: v >= 1, "1 token or more")
        for name in (
            "sharegpt_output_len",
            "prefix_repetition_suffix_len",
            "prefix_repetition_output_len",
            "sonnet_input_len",
            "sonnet_output_len",
            "hf_output_len",
        ):
            require(name, getattr(self, name), lambda v: v >= 1, "1 token or more")
        require("time_scale", self.time_scale, lambda v: 1e-3 <= v <= 1e6, "a number from 0.001 to 1,000,000")
        for name in ("random_prefix_len", "prefix_repetition_prefix_len", "sonnet_prefix_len"):
            require(name, getattr(self, name), lambda v: v >= 0, "0 tokens or more")
        require("prefix_repetition_num_prefixes", self.prefix_repetition_num_prefixes, lambda v: v >= 1, "1 or more")
        rows = "1 token or more, or -1 where every row says; what a row asks itself goes first anyway"
        require("custom_output_len", self.custom_output_len, lambda v: v >= 1 or v == -1, rows)
