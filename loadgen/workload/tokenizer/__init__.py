"""Tokenizers, and texts whose length in tokens is known."""
