"""The workload: which prompts are sent, when they are due, and the bytes of the requests."""
