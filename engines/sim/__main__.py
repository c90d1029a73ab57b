"""`python -m loadgen.engines.sim`: the simulated engine as a process."""

from loadgen.engines.sim.server import main

raise SystemExit(main())
