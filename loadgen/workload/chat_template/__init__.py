"""Chat-template tokens: what a server counts of a chat beyond the tokens of its text.

`template` renders the template beside a tokenizer, `template_tokens` asks a server for them, and
`prediction` predicts the tokens that the server will count of each prompt.
"""
