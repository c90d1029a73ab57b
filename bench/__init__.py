"""Tuning studies: not built yet."""
