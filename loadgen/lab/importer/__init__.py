"""Imports results that others published into the store of a study."""
