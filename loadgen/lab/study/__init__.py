"""Studies: which way of serving a model is best."""
