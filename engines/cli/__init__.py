"""The commands `loadgen serve` and `loadgen engines`."""
