"""Imports: results that others published, put into a store of a study, so that they can be compared."""
