# Bytes: buffers that grow and are counted in debug builds, for `wire`; included there.


cdef inline int append(Bytes *to, const char *p, Py_ssize_t n) except -1:
    cdef char *grown
    cdef Py_ssize_t room
    if n == 0:  # to.data and p may be NULL, which memcpy must not be given
        return 0
    if to.size + n > to.room:
        room = max(to.size + n, 2 * to.room, 256)
        freed(to.data)
        grown = <char *>realloc(to.data, room)
        if grown == NULL:
            raise MemoryError()
        allocated(grown)
        to.data, to.room = grown, room
    memcpy(to.data + to.size, p, n)
    to.size += n
    return 0


cdef inline void dispose(Bytes *of) noexcept:
    freed(of.data)
    free(of.data)
