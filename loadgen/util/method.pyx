# cython: language_level=3
"""Method: a method of a compiled object, which compiled code calls without Python, though it knows
neither the object nor its class; Python calls it as any other.
"""
cimport cython


@cython.final
cdef class Method:
    """A method with one argument, or none; it is made by `method_of`."""

    @property
    def __self__(self):
        """The object, as that of a bound method of Python."""
        return self.target

    def __call__(self, argument=None):
        self.function(self.target, argument)
