"""What several runs say: comparisons, load searches, audits, and the numbers of other tools."""
