"""Real engines on the CPU of this machine."""
