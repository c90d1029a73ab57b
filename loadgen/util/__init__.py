"""Helpers for the operating system, text, processes and files. They know nothing of load tests."""
