"""The flags of `vllm bench serve`, by its own parser, a JSON list; the interpreter that has vLLM
runs this.
"""

import argparse
import json

from vllm.benchmarks.serve import add_cli_args

parser = argparse.ArgumentParser(add_help=False)
add_cli_args(parser)
print(
    "flags",
    json.dumps(sorted(name for action in parser._actions for name in action.option_strings)),
)
