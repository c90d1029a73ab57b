"""How fast prompts are made, with Qwen3's tokenizer.

`python -m bench.performance.prompts`, a part of `make bench`.
"""

import sys
import tempfile
from pathlib import Path

from bench.performance import prompt_speed
from tests.helpers import real_tokenizers as packages
from tests.helpers.source import ROOT

SIMULATOR = ROOT / "engines" / "sim" / "tokenizer.json"


def main() -> None:
    """Build the tokenizer, or take the simulator's small one where its package is missing, and
    measure.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            tokenizer = packages.qwen3(Path(folder))
        except ImportError as error:
            print(f"{error}: with the simulator's tokenizer instead", file=sys.stderr)
            tokenizer = SIMULATOR
        prompt_speed.main(["--tokenizer", str(tokenizer), *sys.argv[1:]])


if __name__ == "__main__":
    main()
