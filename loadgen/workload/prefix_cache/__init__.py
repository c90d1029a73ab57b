"""The prefix cache of a server: what the prompts of a run share, the salt of prompts, and
prompts that warm it up.
"""
