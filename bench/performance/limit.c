// The least that a client can cost on this machine: one epoll loop in C that sends at a constant rate, asks the kernel
// with every read when the bytes arrived and whether more are waiting, finds the tokens by their bytes, and keeps lags,
// TTFTs and a histogram of gaps. It parses nothing. Where the kernel tells no time, it is the time of the read.
//
//     limit [-sipbtqe] PORT MODEL RATE COUNT TOKENS CONNECTIONS
//
// Each of -sipbtq adds system calls that loadgen makes:
//     -s  after a send, the kernel's stamp of what was sent is taken from the error queue
//     -i  after the last read of an answer, and after each that is late by LATE_NS, TCP_INFO tells in how many segments
//         it came
//     -p  before a send, a peek shows whether the server has closed the connection
//     -b  before a send, the request is read from a file
//     -t  a timerfd is set and read for each send, in place of the timeout of epoll_pwait2
//     -q  the kernel is asked what can be read before each wait, so that the rest is known to have come later
// -e sends embeddings, whose answers come in one piece without a token.
//
// It speaks to 127.0.0.1 and prints one line of JSON. CPU seconds (user and system) count from the first send to the
// last end; CONNECTIONS are opened before that.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/net_tstamp.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MOST_CONNECTIONS 20000
#define READ_BYTES 65536
#define AT_ONCE 1024
#define MOST_SENDS 64   // late ones before it reads again: their answers free connections for those behind them
#define GAP_BINS 65536  // of 2^14 ns each
#define LATE_NS 50000   // after the stamp
#define NICENESS -10    // as loadgen's, where the system allows it

typedef struct {
    int fd;
    int64_t sent, first, last;  // ns; first is 0 until the first token
} Connection;

static const char TOKEN[] = "\"content\":\"";  // a quote right behind it: an empty delta, which is no token
static const char END[] = "0\r\n\r\n";         // of a chunked body
static const char OK[] = "HTTP/1.1 200";       // what an answer in one piece begins with

static int stamps_sends, asks_info, peeks, reads_bodies, has_timer, asks_first, embeds;  // the switches
static int epoll, timer;
static struct sockaddr_in server;
static Connection *idle[MOST_CONNECTIONS];
static int idle_count;
static char request[8192];
static int request_size;
static FILE *bodies;                  // holds the request
static int64_t real_minus_monotonic;  // ns: the kernel's stamps are of the wall clock
static int64_t *lags, *ttfts;         // ns, one per request
static long gaps[GAP_BINS];
static long done, tokens_seen, unfinished, segments;  // unfinished: reads that left bytes waiting

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void give_up(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static int64_t clock_ns(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

static void write_request(const char *model, int tokens) {
    char prompt[1024] = "prompt", body[4096];
    for (int word = 1; word < 128; word++) strcat(prompt, " prompt");
    int size = embeds ? snprintf(body, sizeof body, "{\"model\":\"%s\",\"input\":\"%s\"}", model, prompt)
                      : snprintf(body, sizeof body,
                                 "{\"model\":\"%s\",\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],"
                                 "\"max_completion_tokens\":%d,\"stream\":true,"
                                 "\"stream_options\":{\"include_usage\":true}}",
                                 model, prompt, tokens);
    request_size = snprintf(request, sizeof request,
                            "POST /v1/%s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                            "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                            embeds ? "embeddings" : "chat/completions", size, body);
    bodies = tmpfile();
    if (!bodies || write(fileno(bodies), request, request_size) != request_size) fail("tmpfile");
}

static Connection *open_connection(void) {
    Connection *c = calloc(1, sizeof *c);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (void *)&server, sizeof server)) fail("connect");
    int on = 1, stamps = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE;
    if (stamps_sends) stamps |= SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY;
    setsockopt(c->fd, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps);
    setsockopt(c->fd, IPPROTO_TCP, TCP_INQ, &on, sizeof on);
    struct epoll_event wanted = {EPOLLIN, {.ptr = c}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &wanted);
    return c;
}

// Reads as recv does, without waiting. *at_ns becomes the kernel's stamp, if there is one.
static ssize_t read_stamped(int fd, char *buffer, int flags, int64_t *at_ns) {
    static char told[256];
    struct iovec into = {buffer, buffer ? READ_BYTES : 0};
    struct msghdr message = {.msg_iov = &into, .msg_iovlen = 1, .msg_control = told, .msg_controllen = sizeof told};
    ssize_t size = recvmsg(fd, &message, flags | MSG_DONTWAIT);
    if (size < 0) return size;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_TIMESTAMPING) {
            struct timespec *stamp = (struct timespec *)CMSG_DATA(part);  // the first of three is the software's
            *at_ns = stamp->tv_sec * 1000000000LL + stamp->tv_nsec - real_minus_monotonic;
        } else if (part->cmsg_level == IPPROTO_TCP && part->cmsg_type == TCP_CM_INQ) {
            unfinished += *(int *)CMSG_DATA(part) > 0;
        }
    }
    return size;
}

static int64_t send_one(void) {
    char byte;
    Connection *c = idle_count ? idle[--idle_count] : open_connection();
    if (peeks && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0) give_up("an idle connection is closed");
    if (reads_bodies && pread(fileno(bodies), request, request_size, 0) != request_size) fail("pread");
    c->first = 0;
    int64_t at = c->sent = now_ns();
    if (write(c->fd, request, request_size) != request_size) fail("write");
    if (stamps_sends) read_stamped(c->fd, NULL, MSG_ERRQUEUE, &c->sent);
    return at;
}

static void ask_segments(int fd) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size)) fail("TCP_INFO");
    segments += info.tcpi_data_segs_in;
}

static void end(Connection *c) {
    ttfts[done++] = c->first - c->sent;
    if (idle_count == MOST_CONNECTIONS) give_up("too many connections");
    idle[idle_count++] = c;
}

static void receive(Connection *c) {
    static char buffer[READ_BYTES];
    int64_t at = 0;
    ssize_t size = read_stamped(c->fd, buffer, 0, &at);
    if (size < 0 && errno == EAGAIN) {  // a stamp of what was sent that came late
        read_stamped(c->fd, NULL, MSG_ERRQUEUE, &c->sent);
        return;
    }
    if (size <= 0) fail("recvmsg");
    char *p = buffer, *stop = buffer + size;
    int ends = embeds || (size >= 5 && !memcmp(stop - 5, END, 5));
    if (asks_info && (ends || now_ns() - at > LATE_NS)) ask_segments(c->fd);
    if (!at) at = now_ns();
    if (embeds) {
        if (size < (ssize_t)sizeof OK || memcmp(buffer, OK, sizeof OK - 1)) give_up("an answer is not OK");
        c->first = at;
    }
    while ((p = memmem(p, stop - p, TOKEN, sizeof TOKEN - 1))) {
        p += sizeof TOKEN - 1;
        if (p < stop && *p == '"') continue;
        tokens_seen++;
        if (!c->first)
            c->first = at;
        else
            gaps[((at - c->last) >> 14) % GAP_BINS]++;
        c->last = at;
    }
    if (ends) end(c);
}

static void set_timer(int64_t at_ns) {
    static int64_t set_ns;
    if (at_ns == set_ns) return;  // it is set for this send
    set_ns = at_ns;
    struct itimerspec at = {{0, 0}, {at_ns / 1000000000, at_ns % 1000000000}};
    if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL)) fail("timerfd_settime");
}

static void read_timer(void) {
    int64_t times;
    if (read(timer, &times, sizeof times) < 0 && errno != EAGAIN) fail("read");
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double peak_mb(void) {
    char line[256];
    long kb = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %ld", &kb);
    if (status) fclose(status);
    return kb * 1024 / 1e6;
}

static int read_switches(int argc, char **argv) {
    for (int letter; (letter = getopt(argc, argv, "sipbtqe")) != -1;) {
        if (letter == 's') stamps_sends = 1;
        if (letter == 'i') asks_info = 1;
        if (letter == 'p') peeks = 1;
        if (letter == 'b') reads_bodies = 1;
        if (letter == 't') has_timer = 1;
        if (letter == 'q') asks_first = 1;
        if (letter == 'e') embeds = 1;
        if (letter == '?') return 0;
    }
    return argc - optind == 6;
}

int main(int argc, char **argv) {
    if (!read_switches(argc, argv)) {
        fprintf(stderr, "usage: limit [-sipbtqe] PORT MODEL RATE COUNT TOKENS CONNECTIONS\n");
        return 2;
    }
    argv += optind;
    double rate = atof(argv[2]);
    long count = atol(argv[3]), sent = 0;
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(atoi(argv[0]))};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    write_request(argv[1], atoi(argv[4]));
    setpriority(PRIO_PROCESS, 0, NICENESS);
    epoll = epoll_create1(0);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event rings = {EPOLLIN, {.ptr = NULL}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &rings);
    lags = malloc(count * sizeof *lags);
    ttfts = malloc(count * sizeof *ttfts);
    for (int n = atoi(argv[5]); n > 0 && idle_count < MOST_CONNECTIONS; n--) idle[idle_count++] = open_connection();

    real_minus_monotonic = clock_ns(CLOCK_REALTIME) - now_ns();
    int64_t startup_cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    int64_t start = now_ns() + 50000000, first_sent = 0, last_sent = 0;
    static struct epoll_event ready[AT_ONCE];
    while (done < count) {
        struct timespec wait, *timeout = NULL;
        for (int sends = 0; sent < count; sent++, sends++) {
            int64_t due = start + (int64_t)(sent / rate * 1e9), left = due - now_ns();
            if (left > 0 || sends == MOST_SENDS) {
                left = left > 0 ? left : 0;
                if (has_timer && left) {
                    set_timer(due);
                    break;
                }
                wait = (struct timespec){left / 1000000000, left % 1000000000};
                timeout = &wait;
                break;
            }
            last_sent = send_one();
            if (!sent) first_sent = last_sent;
            lags[sent] = last_sent - due;
        }
        int n = asks_first ? epoll_wait(epoll, ready, AT_ONCE, 0) : 0;
        if (!n) n = epoll_pwait2(epoll, ready, AT_ONCE, timeout, NULL);
        for (int i = 0; i < n; i++) {
            if (ready[i].data.ptr)
                receive(ready[i].data.ptr);
            else
                read_timer();
        }
    }
    double wall_s = (now_ns() - first_sent) / 1e9;
    double cpu_s = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - startup_cpu) / 1e9;

    qsort(lags, count, sizeof *lags, ascending);
    qsort(ttfts, count, sizeof *ttfts, ascending);
    printf("{\"requests\": %ld, \"tokens\": %ld, \"cpu_s\": %.6f, \"startup_cpu_s\": %.6f, \"wall_s\": %.6f, "
           "\"achieved_rps\": %.3f, \"late_p50_ms\": %.3f, \"late_p99_ms\": %.3f, \"late_max_ms\": %.3f, "
           "\"ttft_p50_ms\": %.3f, \"ttft_p99_ms\": %.3f, \"reads_unfinished\": %ld, \"segments\": %ld, "
           "\"peak_mb\": %.3f}\n",
           done, tokens_seen, cpu_s, startup_cpu / 1e9, wall_s,
           last_sent > first_sent ? (count - 1) / ((last_sent - first_sent) / 1e9) : 0.0, lags[count / 2] / 1e6,
           lags[count * 99 / 100] / 1e6, lags[count - 1] / 1e6, ttfts[count / 2] / 1e6, ttfts[count * 99 / 100] / 1e6,
           unfinished, segments, peak_mb());
    return 0;
}
