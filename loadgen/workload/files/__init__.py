"""Files of data sets: downloads, hashes, mappings, and the cache between runs."""
