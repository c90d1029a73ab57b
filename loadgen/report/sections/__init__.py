"""Sections of the report of a run: each as lines for the console, and as blocks of a page."""
