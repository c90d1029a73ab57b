"""Runs from several machines, which here are two nodes of a Ray cluster on this one."""
