"""Helpers around the operating system, text, processes and files. Nothing here knows a word of the domain."""
