"""What the client costs, how it scales, and how fast prompts are made."""
