"""Analysis of several runs: comparisons, load searches, audits, and the numbers of other tools.

See DESIGN.md.
"""
