"""`uniforms`: random numbers that depend on a seed, a purpose and what they are drawn for alone.

Any number of processes draws the same ones, in any order. It needs no NumPy, which a measuring process does not import.
"""

import hashlib

_BYTES = 6  # of a number: the most whole bytes that a float holds exactly


def uniforms(count: int, seed: int, purpose: str, *of: int) -> list[float]:
    """Draw numbers from 0 up to, and without, 1.

    Args:
        count: How many: at most ten.
        seed: The seed of the run, or of the part of it that they belong to.
        purpose: What they decide, so that draws of different purposes do not depend on each other.
        of: The numbers of what they are drawn for: a request, a user, a session and its turn.
    """
    name = "/".join([purpose, *map(str, (seed, *of))])
    drawn = hashlib.blake2b(name.encode(), digest_size=count * _BYTES).digest()
    return [int.from_bytes(drawn[at : at + _BYTES]) / 2**48 for at in range(0, len(drawn), _BYTES)]
