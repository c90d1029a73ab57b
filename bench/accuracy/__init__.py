"""How near the figures of a run come to the truth."""
