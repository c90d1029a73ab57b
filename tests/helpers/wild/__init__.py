"""Benchmark commands from public repositories, and a server that answers all of them."""
