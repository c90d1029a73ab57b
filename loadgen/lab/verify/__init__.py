"""Verify: the numbers of a saved result, computed a second time from its records."""
