# cython: language_level=3
"""What is asked of the kernel: the clock, sockets without waiting, and stamps of what a TCP socket
sends and receives.

Linux stamps each segment as it leaves the host and as it reaches it, on CLOCK_REALTIME. With what
it reads, recvmsg returns the stamp of the last segment. The stamp of what was sent waits in the
error queue of the socket, usually as soon as `send` returns. Other systems have no stamps.
"""
from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <time.h>
    static inline int64_t loadgen_now_ns(void) {
    #ifdef __APPLE__  /* Python's clock stands still while the machine sleeps, as this one does */
        return (int64_t)clock_gettime_nsec_np(CLOCK_UPTIME_RAW);
    #else
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    #endif
    }
    """
    # Nanoseconds on the clock of `time.monotonic_ns()`.
    int64_t now_ns "loadgen_now_ns"() noexcept nogil
    const int64_t NEVER "INT64_MAX"  # a time on it that does not come


cdef extern from *:
    """
    #include <sys/socket.h>
    #ifndef MSG_NOSIGNAL  /* Python ignores SIGPIPE */
    #define MSG_NOSIGNAL 0
    #endif
    """
    enum: MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK, SHUT_RDWR
    ssize_t recv(int fd, void *data, size_t size, int flags) nogil
    ssize_t send(int fd, const void *data, size_t size, int flags) nogil
    int shutdown(int fd, int how) nogil


cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>
    #include <time.h>
    #include <unistd.h>
    #include <sys/socket.h>

    struct loadgen_tcp_numbers {
        uint64_t segments, bytes;
        int32_t out_of_order, retransmits, min_rtt_us, rtt_us;
    };

    #ifdef __linux__
    #include <netinet/in.h>
    #include <linux/errqueue.h>
    #include <linux/net_tstamp.h>
    #include <linux/tcp.h>

    static inline int loadgen_ask_for_stamps(int fd, int of_sent) {
        int flags = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE;
        if (of_sent)
            flags |= SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_OPT_ID
                | SOF_TIMESTAMPING_OPT_TSONLY;
        return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) == 0;
    }

    static inline int64_t loadgen_stamp_in(struct msghdr *message) {
        struct cmsghdr *item;
        struct timespec stamp = {0, 0};
        for (item = CMSG_FIRSTHDR(message); item != NULL; item = CMSG_NXTHDR(message, item)) {
            if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_TIMESTAMPING)
                memcpy(&stamp, CMSG_DATA(item), sizeof stamp);
        }
        return (int64_t)stamp.tv_sec * 1000000000 + stamp.tv_nsec;
    }

    static inline ssize_t loadgen_receive(int fd, void *data, size_t size, int64_t *real_ns) {
        union { char bytes[192]; struct cmsghdr aligned; } control;
        struct iovec part = {data, size};
        struct msghdr message = {
            .msg_iov = &part, .msg_iovlen = 1,
            .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
        ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);
        *real_ns = n > 0 ? loadgen_stamp_in(&message) : 0;
        return n;
    }

    static inline int64_t loadgen_stamp_of_sent(int fd) {
        union { char bytes[192]; struct cmsghdr aligned; } control;
        struct msghdr message = {
            .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
        if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return 0;
        return loadgen_stamp_in(&message);
    }

    static inline int loadgen_tcp_numbers(int fd, struct loadgen_tcp_numbers *numbers) {
        struct tcp_info info;
        socklen_t size = sizeof info;
        size_t needed = offsetof(struct tcp_info, tcpi_data_segs_in)
            + sizeof info.tcpi_data_segs_in;
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < needed)
            return 0;
        numbers->segments = info.tcpi_data_segs_in;
        numbers->bytes = info.tcpi_bytes_received;
        numbers->min_rtt_us = info.tcpi_min_rtt == ~0U ? -1 : (int32_t)info.tcpi_min_rtt;
        numbers->rtt_us = info.tcpi_rtt;
        numbers->retransmits = info.tcpi_total_retrans;
        numbers->out_of_order = -1;
        if (size >= offsetof(struct tcp_info, tcpi_rcv_ooopack) + sizeof info.tcpi_rcv_ooopack)
            numbers->out_of_order = info.tcpi_rcv_ooopack;
        return 1;
    }

    static inline int64_t loadgen_receive_buffer(int fd) {
        int size = 0;
        socklen_t length = sizeof size;
        return getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &length) == 0 ? size : 0;
    }

    static inline int64_t loadgen_run_delay_ns(int fd) {
        char text[64] = {0};  /* for how long it has run, and for how long it has waited */
        const char *p = text;
        int64_t waited_ns = 0;
        if (pread(fd, text, sizeof text - 1, 0) <= 0) return -1;
        while (*p >= '0' && *p <= '9') p++;
        if (p == text || *p++ != ' ' || *p < '0' || *p > '9') return -1;
        while (*p >= '0' && *p <= '9') waited_ns = waited_ns * 10 + (*p++ - '0');
        return waited_ns;
    }

    static inline int64_t loadgen_real_ns(void) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    }
    #else
    static inline int64_t loadgen_receive_buffer(int fd) { return 0; }
    static inline int64_t loadgen_run_delay_ns(int fd) { return -1; }
    static inline int loadgen_ask_for_stamps(int fd, int of_sent) { return 0; }
    static inline ssize_t loadgen_receive(int fd, void *data, size_t size, int64_t *real_ns) {
        *real_ns = 0;
        return recv(fd, data, size, MSG_DONTWAIT);
    }
    static inline int64_t loadgen_stamp_of_sent(int fd) { return 0; }
    static inline int loadgen_tcp_numbers(int fd, struct loadgen_tcp_numbers *numbers) {
        return 0;
    }
    static inline int64_t loadgen_real_ns(void) { return 0; }
    #endif
    """
    # Of a TCP socket, since it was opened; -1: the kernel does not say.
    ctypedef struct TcpNumbers "struct loadgen_tcp_numbers":
        uint64_t segments, bytes  # data that has come
        int32_t out_of_order  # segments that came before an earlier one
        int32_t retransmits  # segments that were sent again
        int32_t min_rtt_us, rtt_us  # the least and the smoothed round trip time
    # Ask for stamps of what is received, and of what is sent or for none of these. False: the
    # kernel has none.
    bint ask_for_stamps "loadgen_ask_for_stamps"(int fd, bint of_sent) noexcept nogil
    # Read without waiting, as recv. `real_ns`: the stamp of the last segment, 0: none came.
    ssize_t receive "loadgen_receive"(int fd, void *data, size_t size, int64_t *real_ns) nogil
    # Take the stamp of the last byte of a `send` from the error queue; 0: there is none.
    int64_t stamp_of_sent "loadgen_stamp_of_sent"(int fd) noexcept nogil
    # What TCP knows of a socket; False: nothing.
    bint tcp_numbers "loadgen_tcp_numbers"(int fd, TcpNumbers *numbers) noexcept nogil
    # The size of a socket's receive buffer now; 0: not known. Half of it, or more, is its window.
    int64_t receive_buffer "loadgen_receive_buffer"(int fd) noexcept nogil
    # For how long the thread whose file `schedstat` is open has waited for a processor since it
    # began, ns; -1: not known.
    int64_t run_delay_ns "loadgen_run_delay_ns"(int fd) noexcept nogil
    # Nanoseconds on CLOCK_REALTIME; 0: the system has no stamps.
    int64_t real_ns "loadgen_real_ns"() noexcept nogil
