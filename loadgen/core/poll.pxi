# Poll: the part of `wire` that reads sockets without the event loop between; included there.

cdef extern from *:
    """
    #include <errno.h>
    #include <unistd.h>
    #ifdef __linux__
    #include <sys/epoll.h>
    #else  /* there is none: `epoll_create1` says so, and the event loop reads */
    #include <stdint.h>
    enum { EPOLLIN = 1, EPOLL_CLOEXEC = 0, EPOLL_CTL_ADD = 1, EPOLL_CTL_DEL = 2 };
    struct epoll_event { uint32_t events; union { int fd; } data; };
    static int epoll_create1(int flags) { return -1; }
    static int epoll_ctl(int poll, int what, int fd, struct epoll_event *event) { return -1; }
    static int epoll_wait(int poll, struct epoll_event *events, int most, int timeout_ms) { return -1; }
    #endif
    """
    ctypedef union epoll_data_t:
        int fd
    ctypedef struct epoll_event "struct epoll_event":
        uint32_t events
        epoll_data_t data
    enum: EAGAIN, EINTR, EPOLLIN, EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL
    int errno
    int epoll_create1(int) nogil
    int epoll_ctl(int, int, int, epoll_event *) nogil
    int epoll_wait(int, epoll_event *, int, int) nogil
    int close_fd "close"(int) nogil


cdef class Poll(Bell):
    """Sockets that are read here, in one line with the alarms of whoever sends.

    The event loop watches the poll as one file. A socket that has come to its end, or is wrong, is given back to the
    loop, which sees the same. Without epoll, and while it is not open, the loop reads everything.

    linger_ns: for how long a poll that has read something waits for more, instead of handing over to the loop, which saves
    it a turn. It does so only while a heartbeat rings, which bounds each wait, and while nothing leans on the loop.
    leaning: how many connections the loop itself opens, reads or writes to.
    """

    def __init__(self, int64_t linger_ns=0):
        Bell.__init__(self)
        self.fd, self.linger_ns, self.watched = -1, linger_ns, []

    def open(self, loop):
        """Have `loop` watch it, until it has been closed as often as opened."""
        self.users += 1
        if self.users == 1:
            self.loop = loop
            self.fd = epoll_create1(EPOLL_CLOEXEC)
            if self.fd >= 0:
                loop.add_reader(self.fd, self.turn)

    def close(self):
        """See `open`."""
        self.users -= 1
        if self.users == 0 and self.fd >= 0:
            self.loop.remove_reader(self.fd)
            close_fd(self.fd)
            self.fd, self.watched = -1, []

    def add_reader(self, int fd, callback):
        """As the method of an event loop.

        Raises:
            OSError: The kernel watches no more files.
        """
        if self.fd < 0:
            self.loop.add_reader(fd, callback)
        elif not self._watch(fd, callback):
            raise OSError(errno, os.strerror(errno))

    def remove_reader(self, int fd):
        """As the method of an event loop."""
        if self.fd < 0:
            self.loop.remove_reader(fd)
        else:
            self._forget(fd)

    cdef bint _watch(self, int fd, object what) except -1:
        """Serve `what` whenever `fd` can be read; False where the kernel watches no more files."""
        cdef epoll_event event
        event.events, event.data.fd = EPOLLIN, fd
        if epoll_ctl(self.fd, EPOLL_CTL_ADD, fd, &event) != 0:
            return False
        if fd >= len(self.watched):
            self.watched.extend([None] * (fd + 1 - len(self.watched)))
        self.watched[fd] = what
        return True

    cdef int _forget(self, int fd) except -1:
        cdef epoll_event event
        if self.fd >= 0 and fd < len(self.watched) and self.watched[fd] is not None:
            epoll_ctl(self.fd, EPOLL_CTL_DEL, fd, &event)
            self.watched[fd] = None
        return 0

    def turn(self):
        """Read what can be read."""
        cdef epoll_event[AT_ONCE] events
        cdef int64_t until_ns = now_ns() + self.linger_ns
        cdef int i, n = epoll_wait(self.fd, events, AT_ONCE, 0)
        while n > 0:
            for i in range(n):
                self._serve(events[i].data.fd)
            if not self.beats or self.leaning or self.fd < 0 or now_ns() >= until_ns:
                return
            with nogil:
                n = epoll_wait(self.fd, events, AT_ONCE, -1)

    cdef int _serve(self, int fd) except -1:
        what = self.watched[fd] if fd < len(self.watched) else None
        if isinstance(what, Connection):
            self._read(<Connection>what)
        elif what is not None:  # else forgotten since the kernel was asked
            what()
        return 0

    cdef int _read(self, Connection connection) except -1:
        cdef ssize_t n = recv(connection.fd, self.buffer, READ_BYTES, MSG_DONTWAIT)
        if n < 0 and (errno == EAGAIN or errno == EINTR):
            return 0
        if n < 0:  # told once: the loop would only see an end
            connection.error = OSError(errno, os.strerror(errno))
        if n <= 0:
            return connection._lean()
        try:
            return connection._received(self.buffer, n, now_ns())
        except BaseException as fault:  # as in a loop, which logs it: the response could not be read on
            connection.error = fault
            connection._lean()
            connection.transport.abort()
            raise
