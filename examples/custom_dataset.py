"""Your own prompts: a data set is a class with three methods.

python examples/custom_dataset.py        sends them to the built-in simulator
python examples/custom_dataset.py URL    sends them to the server at URL
"""

import random
import sys
from collections.abc import Iterator
from typing import Any

import loadgen
from loadgen.config.settings import seed_of


class Sums:
    """Prompts to add two numbers, drawn from the seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @classmethod
    def from_settings(cls, settings: loadgen.RunSettings) -> "Sums":
        """For `--dataset-name sums`: raise BadInput for settings that it cannot use."""
        return cls(seed_of(settings, "prompts"))

    def prompts(self, count: int) -> Iterator[loadgen.Prompt]:
        """The same prompts in the same order in every process: drawn from the seed, never from
        the clock.
        """
        draw = random.Random(self.seed)
        for number in range(count):
            text = f"What is {draw.randrange(10**6)} plus {draw.randrange(10**6)}?"
            yield loadgen.Prompt(
                text, input_tokens=16, output_tokens=8, source=f"sums/{self.seed}/{number}"
            )

    def provenance(self) -> dict[str, Any]:
        """The origin of the prompts, for the result."""
        return {"name": "sums", "rule": "two numbers below a million", "seed": self.seed}


def main(arguments: list[str]) -> None:
    """Send a hundred of them."""
    settings = loadgen.RunSettings(request_rate=100, num_prompts=100)
    if arguments:
        settings = settings.replace(base_url=arguments[0], backend="openai-chat")
    result = loadgen.run_sync(settings, dataset=Sums(seed=0))
    prompts = result.provenance.prompts
    print(
        f"{result.verdict}: {result.numbers.completed} {prompts.name}, {prompts.distinct} of them "
        "distinct"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
