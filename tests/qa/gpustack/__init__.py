"""GPUStack's own code, installed apart: the jobs that it composes, and what it reads of their
results.
"""
