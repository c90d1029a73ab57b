"""Recorded sessions of agents: a reader for each format, and the data set that sends them again."""
