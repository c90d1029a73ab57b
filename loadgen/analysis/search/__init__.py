"""Load search: the highest rate, or concurrency, at which a server meets an SLO."""
