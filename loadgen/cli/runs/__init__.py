"""One run or a series of runs at a server: execution, interrupts, crash journal, live export."""
