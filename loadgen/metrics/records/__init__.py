"""The records of a run: each request that has ended, between a header and a trailer."""
