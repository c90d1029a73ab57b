"""Checks of a release that take minutes: `make qa` runs them."""
