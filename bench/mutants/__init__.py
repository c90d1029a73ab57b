"""Defects that are put into a copy of the source, each of which a test or a check must notice."""
