"""Data sets of the Hugging Face hub: their files, their records, and how a record becomes a prompt."""
