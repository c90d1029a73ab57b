"""Far server: the metronome in a namespace: `python -m bench.network.far_server NAME FLAGS...`."""

import sys

from bench.network.namespaces import enter
from loadgen.testing import metronome

if __name__ == "__main__":
    enter(sys.argv[1])
    sys.exit(metronome.main(sys.argv[2:]))
