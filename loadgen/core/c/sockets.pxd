"""Sockets read and written without waiting, for the modules that cimport it: there is no extension module behind it."""

cdef extern from *:
    """
    #include <sys/socket.h>
    #ifndef MSG_NOSIGNAL  /* Python ignores SIGPIPE */
    #define MSG_NOSIGNAL 0
    #endif
    """
    enum: MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK
    ssize_t recv(int fd, void *data, size_t size, int flags) nogil
    ssize_t send(int fd, const void *data, size_t size, int flags) nogil
