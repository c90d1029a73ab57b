"""Prompts as other tools make them: the data sets of `--dataset-rule`."""
