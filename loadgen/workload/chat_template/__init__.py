"""Chat-template tokens: what a server counts of a chat beyond the tokens of its text.

`template` renders the template beside a tokenizer, `overhead` asks a server, and `prediction` predicts the tokens that
the server will count of each prompt.
"""
