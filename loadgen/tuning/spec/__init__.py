"""Studies as their files describe them."""
