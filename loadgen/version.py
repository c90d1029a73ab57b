"""The version of loadgen, in a module of its own so that every room may name it."""

__version__ = "0.1.0"
