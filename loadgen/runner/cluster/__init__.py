"""Runs on several machines, through Ray."""
