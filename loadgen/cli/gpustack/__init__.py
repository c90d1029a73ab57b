"""A stand-in for GPUStack's benchmark-runner: its command line in, its summary out, measured by loadgen."""
