"""Runs from several machines: what `make test-all` does not try of them."""
