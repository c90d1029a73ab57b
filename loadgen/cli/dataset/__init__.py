"""The parts of `loadgen dataset`: the overview as text, downloads, and the prompt cache."""
