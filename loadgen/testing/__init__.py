"""The test kit: servers that know the truth, servers that misbehave, a virtual clock and a network in memory.

Public, for the tests of anything that measures or talks to LLM servers. Each server is a module that runs as
`python -m loadgen.testing.NAME`, listens on loopback unless told otherwise, and prints `listening on URL` first.
"""
