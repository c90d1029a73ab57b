"""Engine processes: starting a server, waiting until it answers, stopping it, and checking that
nothing is left.
"""
