"""Descriptions of engines: pure functions from a model and settings to a command line.

Nothing here runs a process.
"""
