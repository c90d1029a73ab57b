"""Where the time of a run's requests went, and what caused it."""
