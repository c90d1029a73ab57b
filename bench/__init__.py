"""Benches, and in time tuning studies."""
