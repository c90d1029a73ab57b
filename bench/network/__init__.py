"""Whether the printed bounds hold where a network loses, delays and reorders segments."""
