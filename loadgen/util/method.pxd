# cython: language_level=3
"""Calls of compiled methods by compiled code that knows only that something can be called."""
cimport cython

# A compiled method: its object, and its only argument, or None.
ctypedef int (*Function)(object target, object argument) except -1


@cython.final
cdef class Method:
    cdef object target
    cdef Function function


cdef inline Method method_of(object target, Function function):
    """Return the method of an object as something that can be called."""
    cdef Method method = Method.__new__(Method)
    method.target, method.function = target, function
    return method


cdef inline int call(object callee) except -1:
    """Call without an argument: a Method without Python, anything else as Python does."""
    if type(callee) is Method:
        (<Method>callee).function((<Method>callee).target, None)
    else:
        callee()
    return 0


cdef inline int call_with(object callee, object argument) except -1:
    """Call with an argument, as `call` does."""
    if type(callee) is Method:
        (<Method>callee).function((<Method>callee).target, argument)
    else:
        callee(argument)
    return 0
