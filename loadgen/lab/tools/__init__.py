"""Other load generators: their results, their prompts, and what they would have printed."""
