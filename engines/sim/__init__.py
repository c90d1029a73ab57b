"""The simulator: an OpenAI-compatible server with a cost model of continuous batching in place
of a language model.
"""
