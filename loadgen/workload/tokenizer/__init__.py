"""Tokenizers, and texts of an exact number of tokens.

For chat-template tokens see `loadgen.workload.chat_template`.
"""
