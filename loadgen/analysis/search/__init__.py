"""Load search: the highest request rate or concurrency at which a server meets an SLO."""
