"""Judge: what load generators print of servers that know the truth."""
