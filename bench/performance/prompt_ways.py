"""Ways: how prompts are made, ours and the usual one, each measured in a process of its own.

`python -m bench.performance.prompt_ways WAY TOKENIZER FILE COUNT TOKENS` prints a Taken as JSON.
The tokenizer is loaded before the clock starts, since that takes as long whichever way is gone;
only `prepared` loads its own on it, as a run does.
"""

import dataclasses
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from loadgen.config.settings import RunSettings
from loadgen.runner.preparer import PrepareOrder
from loadgen.util import child_process
from loadgen.workload import datasets
from loadgen.workload.datasets.sharegpt import ShareGPTDataset
from loadgen.workload.datasets.sharegpt_file import Conversations, ConversationsInOrder
from loadgen.workload.prompt import Prompt
from loadgen.workload.request_store import Requests
from loadgen.workload.target import Target
from loadgen.workload.tokenizer import tokenizer as tokenizers
from loadgen.workload.tokenizer.tokenizer import Tokenizer

MAX_S = 600.0


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be made: `count` prompts, of `tokens` each where they are random, else from
    `file`.
    """

    tokenizer: Path
    file: Path
    count: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Taken:
    """What it took.

    Attributes:
        seconds: Until the last prompt was made.
        tokens: Of all prompts and, where they are recorded, answers.
        own_mb: Memory of the process at its largest, what it has mapped of files left out.
    """

    seconds: float
    tokens: int
    own_mb: float


def measure(way: str, work: Work) -> Taken:
    """Go one way in a fresh process.

    Raises:
        subprocess.CalledProcessError: It failed; what it said is on standard error.
    """
    words = [str(value) for value in dataclasses.astuple(work)]
    command = [sys.executable, "-m", "bench.performance.prompt_ways", way, *words]
    said = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=MAX_S).stdout
    return Taken(**json.loads(said))


# What it returns is what is measured.
Way = Callable[[Work, Tokenizer], Callable[[], Iterator[Prompt]]]


def exact_words(work: Work, tokenizer: Tokenizer) -> Callable[[], Iterator[Prompt]]:
    """Random prompts by loadgen's own rule."""
    dataset = datasets.create(_random(work))
    return lambda: dataset.prompts(work.count)


def encoded_again(work: Work, tokenizer: Tokenizer) -> Callable[[], Iterator[Prompt]]:
    """Random prompts as other tools make them: decode random ids, encode the text, cut it,
    decode it, one by one.
    """

    def prompts() -> Iterator[Prompt]:
        draw = np.random.default_rng(0)
        for row in range(work.count):
            ids = (
                int(draw.integers(tokenizer.own_size)) + np.arange(work.tokens)
            ) % tokenizer.own_size
            (found,) = tokenizer.encode_batch(tokenizer.decode_batch([ids.tolist()]))
            left = found[: work.tokens]
            (text,) = tokenizer.decode_batch([left])
            yield Prompt(text, len(left), 1, str(row))

    return prompts


def sampled(work: Work, tokenizer: Tokenizer) -> Callable[[], Iterator[Prompt]]:
    """ShareGPT prompts as loadgen makes them."""

    def prompts() -> Iterator[Prompt]:
        conversations = Conversations(work.file)
        dataset = ShareGPTDataset(conversations, tokenizer, RunSettings())
        return dataset.prompts(work.count)

    return prompts


def in_order(work: Work, tokenizer: Tokenizer) -> Callable[[], Iterator[Prompt]]:
    """The first conversations of a ShareGPT file, not encoded: the tokens told are their number."""

    def prompts() -> Iterator[Prompt]:
        for found in islice(ConversationsInOrder(work.file), work.count):
            yield Prompt(found.prompt, 1, 0, found.source)

    return prompts


def loaded(work: Work, tokenizer: Tokenizer) -> Callable[[], Iterator[Prompt]]:
    """ShareGPT prompts as other tools make them: load the whole file, shuffle it, encode one
    text after the other.
    """

    def prompts() -> Iterator[Prompt]:
        with work.file.open(encoding="utf-8") as file:
            entries = [entry for entry in json.load(file) if len(entry["conversations"]) >= 2]
        random.Random(0).shuffle(entries)
        made = 0
        for entry in entries:
            if made == work.count:
                return
            prompt, answer = (turn["value"] for turn in entry["conversations"][:2])
            tokens, wanted = (tokenizer.count([text])[0] for text in (prompt, answer))
            if tokens >= 4 and wanted >= 4 and tokens <= 1024 and tokens + wanted <= 2048:
                made += 1
                yield Prompt(prompt, tokens, wanted, f"sharegpt/{entry['id']}")

    return prompts


def prepared(work: Work, tokenizer: Tokenizer) -> Callable[[], Iterator[Prompt]]:
    """Random prompts as a run prepares them, in a process of their own that loads the tokenizer
    and writes requests.
    """

    def prompts() -> Iterator[Prompt]:
        settings = _random(work)
        with tempfile.TemporaryDirectory() as folder:
            order = PrepareOrder(
                settings, Target.from_settings(settings, "m"), work.count, Path(folder)
            )
            command = [sys.executable, "-m", "loadgen.runner.preparer"]
            subprocess.run(
                command, input=child_process.encode(order), stdout=subprocess.DEVNULL, check=True
            )
            with Requests(Path(folder)) as requests:
                for row in range(len(requests)):
                    yield Prompt("", *requests.tokens(row), str(row))

    return prompts


WAYS: dict[str, Way] = {
    way.__name__: way for way in (exact_words, encoded_again, sampled, in_order, loaded, prepared)
}


def _random(work: Work) -> RunSettings:
    return RunSettings(
        tokenizer=str(work.tokenizer), random_input_len=work.tokens, random_output_len=1
    )


def main() -> None:
    """Go the way that the command line names, and say what it took."""
    way, tokenizer, file, count, tokens = sys.argv[1:]
    work = Work(Path(tokenizer), Path(file), int(count), int(tokens))
    go = WAYS[way](work, tokenizers.load(tokenizer))
    began_s = time.perf_counter()
    made = list(go())
    seconds = time.perf_counter() - began_s
    assert len(made) == work.count
    taken = Taken(
        seconds, sum(prompt.input_tokens + prompt.output_tokens for prompt in made), _own_mb()
    )
    print(json.dumps(dataclasses.asdict(taken)))


def _own_mb() -> float:
    """Anonymous memory; it is largest at the end, when all prompts are there."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"RssAnon:\s+(\d+) kB", status)[0]) / 1024


if __name__ == "__main__":
    main()
