"""Your own prompts: a data set is a class with three methods.

python examples/custom_dataset.py        sends them to the built-in simulator
python examples/custom_dataset.py URL    sends them to the server at URL
"""

import random
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import loadgen
from loadgen.config.settings import seed_of


class Sums:
    """Prompts to add two numbers, drawn from the seed."""

    options: ClassVar = {"digits": "digits of each number; 6 by default"}

    def __init__(self, seed: int, digits: int = 6) -> None:
        self.seed, self.digits = seed, digits

    @classmethod
    def from_settings(cls, settings: loadgen.RunSettings) -> "Sums":
        """For `--dataset-name sums`, with options such as `--dataset-arg digits=3`."""
        digits = settings.dataset_options.get("digits", "6")
        if not digits.isdecimal():
            raise loadgen.BadInput("--dataset-arg", f"digits={digits}", "give a whole number")
        return cls(seed_of(settings, "prompts"), int(digits))

    def prompts(self, count: int) -> Iterator[loadgen.Prompt]:
        """The same prompts in the same order in every process: drawn from the seed, never from
        the clock.
        """
        draw, end = random.Random(self.seed), 10**self.digits
        for number in range(count):
            text = f"What is {draw.randrange(end)} plus {draw.randrange(end)}?"
            yield loadgen.Prompt(
                text, input_tokens=16, output_tokens=8, source=f"sums/{self.seed}/{number}"
            )

    def provenance(self) -> dict[str, Any]:
        """The origin of the prompts, for the result."""
        return {"name": "sums", "rule": f"two numbers of {self.digits} digits", "seed": self.seed}


def main(arguments: list[str]) -> None:
    """Send a hundred of them."""
    settings = loadgen.RunSettings(request_rate=100, num_prompts=100)
    if arguments:
        settings = settings.replace(base_url=arguments[0], backend="openai-chat")
    else:
        settings = settings.replace(engine="sim")
    result = loadgen.run_sync(settings, dataset=Sums(seed=0))
    prompts = result.provenance.prompts
    print(
        f"{result.verdict}: {result.numbers.completed} {prompts.name}, {prompts.distinct} of them "
        "distinct"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
