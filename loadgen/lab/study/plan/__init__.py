"""The plan of a study: what it starts, in which order."""
