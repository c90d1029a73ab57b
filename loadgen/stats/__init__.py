"""Statistics: confidence intervals, hypothesis tests and resampling. See DESIGN.md."""
