"""Test kit: servers with known token times, servers with faults, a virtual clock and a network in
memory.

Public, for tests of anything that measures LLM servers or sends requests to them. Each server runs
as `python -m loadgen.testing.NAME`, listens on loopback by default, and prints `listening on URL`
first.
"""
