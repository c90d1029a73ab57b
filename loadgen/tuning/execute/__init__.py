"""Studies carried out: trials, decisions and the store."""
