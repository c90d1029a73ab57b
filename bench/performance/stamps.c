// What the kernel's receive stamps are worth, without any of loadgen's code: one epoll loop in C asks a metronome for
// streams of tokens at a constant rate, and logs for each token when it was read and when the kernel stamped it.
//
//     stamps PORT RATE COUNT TOKENS CONNECTIONS BURN_US STAMPED FILE
//
// It speaks to 127.0.0.1, and opens CONNECTIONS before the first send. After each token it keeps its core busy for
// BURN_US, as a client does that parses. STAMPED is 1, or 0 to read with recv and without stamps. FILE gets an Event
// for each token; one line of JSON is printed. CPU seconds (user and system) count from before the first send to the
// last end.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/net_tstamp.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_CONNECTIONS 20000
#define READ_BYTES 65536
#define AT_ONCE 1024
#define PAIR_NS 1000000  // age at which the two clocks are compared again
#define ATTEMPTS 3       // to read both clocks without an interruption

typedef struct {
    int fd;
    int32_t request, tokens;  // the number of its request, and tokens so far
} Connection;

typedef struct {
    int32_t request, token;     // both from 0
    int64_t read_ns, stamp_ns;  // CLOCK_MONOTONIC; stamp_ns is 0 without a stamp
    int32_t behind;             // tokens behind it in the same read
    int32_t left;               // bytes that the read left in the socket; -1: not known
} Event;

static const char TOKEN[] = "\"content\":\"";  // a quote right behind it: an empty delta, which is no token
static const char END[] = "0\r\n\r\n";         // of a chunked body

static int epoll, stamped, tokens;
static int64_t burn_ns, offset_ns, compared_ns;
static struct sockaddr_in server;
static Connection *idle[MAX_CONNECTIONS];
static int idle_count;
static char body[1024];
static Event *events;
static long event_count, done;

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

// Stamps are on CLOCK_REALTIME. Its distance from CLOCK_MONOTONIC is read between two readings of the latter; the
// narrowest pair counts.
static void compare_clocks(void) {
    int64_t narrowest = INT64_MAX;
    for (int n = 0; n < ATTEMPTS; n++) {
        int64_t before = now_ns(), real = clock_ns(CLOCK_REALTIME), after = now_ns();
        if (after - before >= narrowest) continue;
        narrowest = after - before;
        offset_ns = real - before - narrowest / 2;
    }
    compared_ns = now_ns();
}

static void ask_for_stamps(int fd) {
    int on = 1, flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags)) fail("SO_TIMESTAMPING");
    if (setsockopt(fd, IPPROTO_TCP, TCP_INQ, &on, sizeof on)) fail("TCP_INQ");
}

static Connection *open_connection(void) {
    Connection *c = calloc(1, sizeof *c);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0) fail("socket");
    if (stamped) ask_for_stamps(c->fd);
    if (connect(c->fd, (void *)&server, sizeof server)) fail("connect");
    struct epoll_event wanted = {EPOLLIN, {.ptr = c}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &wanted);
    return c;
}

static int64_t send_one(long number) {
    static char request[2048];
    int size = snprintf(request, sizeof request,
                        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Request-Id: stamps-%ld\r\n"
                        "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                        number, strlen(body), body);
    Connection *c = idle_count ? idle[--idle_count] : open_connection();
    c->request = number;
    c->tokens = 0;
    int64_t at_ns = now_ns();
    if (write(c->fd, request, size) != size) fail("write");
    return at_ns;
}

// Reads as recv does. The stamp is that of the last segment that was read.
static ssize_t read_stamped(int fd, char *buffer, int64_t *on_real_ns, int32_t *left) {
    union {
        char bytes[192];
        struct cmsghdr aligned;
    } control;
    struct iovec part = {buffer, READ_BYTES};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t size = recvmsg(fd, &message, 0);
    for (struct cmsghdr *item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
        if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_TIMESTAMPING) {
            struct timespec stamp;  // the first of three is the software's
            memcpy(&stamp, CMSG_DATA(item), sizeof stamp);
            *on_real_ns = stamp.tv_sec * 1000000000LL + stamp.tv_nsec;
        } else if (item->cmsg_level == IPPROTO_TCP && item->cmsg_type == TCP_CM_INQ) {
            memcpy(left, CMSG_DATA(item), sizeof *left);
        }
    }
    return size;
}

static void burn(void) {
    for (int64_t until = now_ns() + burn_ns; now_ns() < until;) continue;
}

static void receive(Connection *c) {
    static char buffer[READ_BYTES];
    int64_t on_real_ns = 0;
    int32_t left = -1;
    ssize_t size = stamped ? read_stamped(c->fd, buffer, &on_real_ns, &left) : recv(c->fd, buffer, sizeof buffer, 0);
    int64_t read_ns = now_ns();
    if (size <= 0) fail("recv");
    if (stamped && read_ns - compared_ns > PAIR_NS) compare_clocks();
    int64_t stamp_ns = on_real_ns ? on_real_ns - offset_ns : 0;
    long first = event_count;
    char *p = buffer, *end = buffer + size;
    while ((p = memmem(p, end - p, TOKEN, sizeof TOKEN - 1))) {
        p += sizeof TOKEN - 1;
        if (p < end && *p == '"') continue;
        if (c->tokens == tokens) give_up("an answer has more tokens than it was asked for");
        events[event_count++] = (Event){c->request, c->tokens++, read_ns, stamp_ns, 0, left};
        if (burn_ns) burn();
    }
    for (long n = first; n < event_count; n++) events[n].behind = event_count - 1 - n;
    if (size >= 5 && !memcmp(end - 5, END, 5)) {
        if (c->tokens != tokens) give_up("an answer lacks tokens");
        if (idle_count == MAX_CONNECTIONS) give_up("too many connections");
        idle[idle_count++] = c;
        done++;
    }
}

static void save(const char *name) {
    FILE *file = fopen(name, "wb");
    if (!file || fwrite(events, sizeof *events, event_count, file) != (size_t)event_count || fclose(file)) fail(name);
}

int main(int argc, char **argv) {
    if (argc != 9) {
        fprintf(stderr, "usage: stamps PORT RATE COUNT TOKENS CONNECTIONS BURN_US STAMPED FILE\n");
        return 2;
    }
    double rate = atof(argv[2]);
    long count = atol(argv[3]), sent = 0;
    tokens = atoi(argv[4]);
    burn_ns = 1000 * atol(argv[6]);
    stamped = atoi(argv[7]);
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    snprintf(body, sizeof body,
             "{\"model\":\"metronome\",\"messages\":[{\"role\":\"user\",\"content\":\"How late?\"}],"
             "\"max_completion_tokens\":%d,\"stream\":true}",
             tokens);
    epoll = epoll_create1(0);
    events = malloc(count * tokens * sizeof *events);
    memset(events, 0xff, count * tokens * sizeof *events);  // so that no page is fetched while it measures
    for (int n = atoi(argv[5]); n > 0 && idle_count < MAX_CONNECTIONS; n--) idle[idle_count++] = open_connection();

    compare_clocks();
    int64_t startup_cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    int64_t start = now_ns() + 50000000, first_sent = 0;
    static struct epoll_event ready[AT_ONCE];
    while (done < count) {
        struct timespec wait, *timeout = NULL;
        for (; sent < count; sent++) {
            int64_t left = start + (int64_t)(sent / rate * 1e9) - now_ns();
            if (left > 0) {
                wait = (struct timespec){left / 1000000000, left % 1000000000};
                timeout = &wait;
                break;
            }
            int64_t at_ns = send_one(sent);
            if (!sent) first_sent = at_ns;
        }
        int n = epoll_pwait2(epoll, ready, AT_ONCE, timeout, NULL);
        for (int i = 0; i < n; i++) receive(ready[i].data.ptr);
    }
    double wall_s = (now_ns() - first_sent) / 1e9;
    double cpu_s = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - startup_cpu) / 1e9;
    save(argv[8]);
    printf("{\"events\": %ld, \"cpu_s\": %.6f, \"wall_s\": %.6f}\n", event_count, cpu_s, wall_s);
    return 0;
}
