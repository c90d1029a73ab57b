"""The simulator's knobs: one frozen object, every field of which is a flag."""

import argparse
import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from loadgen.engines.sim.scheduler import Limits, StepCosts
from loadgen.errors import BadInput


def knob(default: Any, text: str, *, least: float | None = None) -> Any:
    """Declare a field with its help line and the smallest value it may have."""
    return dataclasses.field(default=default, metadata={"help": text, "least": least})


@dataclass(frozen=True, kw_only=True)
class SimSettings:
    """How the simulated engine serves; names are vLLM's where it has the knob.

    The defaults describe a large, fast deployment that sustains 1,000 requests/s of 1,024-token prompts and 128-token
    answers at half its capacity.

    Raises:
        BadInput: A value is out of range, or two contradict each other.
    """

    host: str = knob("127.0.0.1", "address to listen on")
    port: int = knob(8000, "port to listen on; 0 takes a free one", least=0)
    served_model_name: str = knob("sim", "model name that requests must use")
    seed: int = knob(0, "seed of the answers' words and lengths")

    max_model_len: int = knob(65536, "most tokens of prompt and answer together", least=2)
    max_num_seqs: int = knob(4096, "most sequences running at once", least=1)
    max_num_batched_tokens: int = knob(32768, "most tokens computed in one step", least=1)
    num_kv_tokens: int = knob(4194304, "tokens of KV cache", least=1)

    step_base_ms: float = knob(8.0, "time of an engine step without work", least=0.001)
    prefill_us_per_token: float = knob(0.1, "time a step takes longer for each prompt token", least=0)
    decode_us_per_seq: float = knob(0.5, "time a step takes longer for each decoding sequence", least=0)
    kv_ns_per_token: float = knob(0.0, "time a step takes longer for each token of KV cache in use", least=0)
    frontend_ms: float = knob(12.0, "time from a request's arrival until the scheduler sees it", least=0)

    mean_answer_tokens: float = knob(
        0.0,
        "draw where answers end by themselves, geometric with this mean, unless ignore_eos; 0: at max_tokens",
        least=0,
    )
    reasoning_tokens: int = knob(0, "tokens of each answer that are streamed as reasoning", least=0)
    chat_template_tokens: int = knob(0, "tokens that a chat template adds to each prompt", least=0)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, least = getattr(self, field.name), field.metadata["least"]
            if least is not None and not (least <= value < math.inf):
                raise BadInput(flag(field.name), f"{value} is not a usable value", f"give {least} or more")
        if self.port > 65535:
            raise BadInput("--port", f"{self.port} is not a port", "give 0 to 65535")
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise BadInput(
                "--max-num-batched-tokens",
                f"{self.max_num_batched_tokens} is less than --max-num-seqs {self.max_num_seqs}",
                "raise it, or lower --max-num-seqs: each running sequence takes a token of every step",
            )
        if self.num_kv_tokens < self.max_model_len:
            raise BadInput(
                "--num-kv-tokens",
                f"{self.num_kv_tokens} is less than --max-model-len {self.max_model_len}",
                "raise it, or lower --max-model-len: one sequence of full length must fit",
            )

    @property
    def limits(self) -> Limits:
        """The scheduler's limits."""
        return Limits(self.max_num_seqs, self.max_num_batched_tokens, self.num_kv_tokens)

    @property
    def costs(self) -> StepCosts:
        """The cost model, in ns."""
        return StepCosts(
            self.step_base_ms * 1e6, self.prefill_us_per_token * 1e3, self.decode_us_per_seq * 1e3, self.kv_ns_per_token
        )

    def argv(self) -> list[str]:
        """Return the flags that say the same."""
        return [text for name, value in dataclasses.asdict(self).items() for text in (flag(name), str(value))]


def flag(name: str) -> str:
    """Return the flag of a field."""
    return "--" + name.replace("_", "-")


def parser(prog: str) -> argparse.ArgumentParser:
    """Return a parser with a flag for every knob."""
    result = argparse.ArgumentParser(prog, description="Serve the simulated engine.", allow_abbrev=False)
    for field in dataclasses.fields(SimSettings):
        result.add_argument(
            flag(field.name),
            type=type(field.default),
            default=field.default,
            metavar=type(field.default).__name__.upper(),
            help=f"{field.metadata['help']} ({field.default})",
        )
    return result
