"""Far server: a server's module in a namespace: `python -m bench.network.far_server NAME MODULE
FLAGS...`.
"""

import runpy
import sys

from bench.network.namespaces import enter

if __name__ == "__main__":
    _, name, module, *flags = sys.argv
    enter(name)
    sys.argv[1:] = flags
    runpy.run_module(module, run_name="__main__", alter_sys=True)
