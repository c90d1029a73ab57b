"""How near the client comes to the truth, measured against servers that know it."""
