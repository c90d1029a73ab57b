// The least that a client can cost on this machine: one epoll loop in C that sends at a constant rate, asks the kernel
// with every read when the bytes arrived and whether more are waiting, finds the tokens by their bytes, and keeps TTFTs
// and a histogram of gaps. It parses nothing. Where the kernel tells no time, it is the time of the read.
//
//     limit PORT MODEL RATE COUNT TOKENS CONNECTIONS
//
// It speaks to 127.0.0.1 and prints one line of JSON. CPU seconds (user and system) count from the first send to the
// last end; CONNECTIONS are opened before that.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST_CONNECTIONS 20000
#define READ_BYTES 65536
#define AT_ONCE 1024
#define GAP_BINS 65536  // of 2^14 ns each

typedef struct {
    int fd;
    int64_t sent, first, last;  // ns; first is 0 until the first token
} Connection;

static const char TOKEN[] = "\"content\":\"";  // a quote right behind it: an empty delta, which is no token
static const char END[] = "0\r\n\r\n";         // of a chunked body

static int epoll;
static struct sockaddr_in server;
static Connection *idle[MOST_CONNECTIONS];
static int idle_count;
static char request[8192];
static int request_size;
static int64_t real_minus_monotonic;  // ns: the kernel's stamps are of the wall clock
static int64_t *ttfts;                // one per ended request
static long gaps[GAP_BINS];
static long done, tokens_seen, unfinished;  // unfinished: reads that left bytes waiting

static void fail(const char *what) {
    perror(what);
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
    int size = snprintf(body, sizeof body,
                        "{\"model\":\"%s\",\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],"
                        "\"max_completion_tokens\":%d,\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
                        model, prompt, tokens);
    request_size = snprintf(request, sizeof request,
                            "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                            "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                            size, body);
}

static Connection *open_connection(void) {
    Connection *c = calloc(1, sizeof *c);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (void *)&server, sizeof server)) fail("connect");
    int on = 1;
    setsockopt(c->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    setsockopt(c->fd, IPPROTO_TCP, TCP_INQ, &on, sizeof on);
    struct epoll_event wanted = {EPOLLIN, {.ptr = c}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &wanted);
    return c;
}

static int64_t send_one(void) {
    Connection *c = idle_count ? idle[--idle_count] : open_connection();
    c->first = 0;
    c->sent = now_ns();
    if (write(c->fd, request, request_size) != request_size) fail("write");
    return c->sent;
}

static void receive(Connection *c) {
    static char buffer[READ_BYTES], told[256];
    struct iovec into = {buffer, sizeof buffer};
    struct msghdr message = {.msg_iov = &into, .msg_iovlen = 1, .msg_control = told, .msg_controllen = sizeof told};
    ssize_t size = recvmsg(c->fd, &message, 0);
    int64_t at = now_ns();
    if (size <= 0) fail("recvmsg");
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec *stamp = (struct timespec *)CMSG_DATA(part);
            at = stamp->tv_sec * 1000000000LL + stamp->tv_nsec - real_minus_monotonic;
        } else if (part->cmsg_level == IPPROTO_TCP && part->cmsg_type == TCP_CM_INQ) {
            unfinished += *(int *)CMSG_DATA(part) > 0;
        }
    }
    char *p = buffer, *end = buffer + size;
    while ((p = memmem(p, end - p, TOKEN, sizeof TOKEN - 1))) {
        p += sizeof TOKEN - 1;
        if (p < end && *p == '"') continue;
        tokens_seen++;
        if (!c->first)
            c->first = at;
        else
            gaps[((at - c->last) >> 14) % GAP_BINS]++;
        c->last = at;
    }
    if (size >= 5 && !memcmp(end - 5, END, 5)) {
        ttfts[done++] = c->first - c->sent;
        if (idle_count == MOST_CONNECTIONS) fail("too many connections");
        idle[idle_count++] = c;
    }
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

int main(int argc, char **argv) {
    if (argc != 7) {
        fprintf(stderr, "usage: limit PORT MODEL RATE COUNT TOKENS CONNECTIONS\n");
        return 2;
    }
    double rate = atof(argv[3]);
    long count = atol(argv[4]), sent = 0;
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    write_request(argv[2], atoi(argv[5]));
    epoll = epoll_create1(0);
    ttfts = malloc(count * sizeof *ttfts);
    for (int n = atoi(argv[6]); n > 0 && idle_count < MOST_CONNECTIONS; n--) idle[idle_count++] = open_connection();

    real_minus_monotonic = clock_ns(CLOCK_REALTIME) - now_ns();
    int64_t startup_cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    int64_t start = now_ns() + 50000000, first_sent = 0, last_sent = 0, late = 0;
    static struct epoll_event ready[AT_ONCE];
    while (done < count) {
        struct timespec wait, *timeout = NULL;
        for (; sent < count; sent++) {
            int64_t due = start + (int64_t)(sent / rate * 1e9), left = due - now_ns();
            if (left > 0) {
                wait = (struct timespec){left / 1000000000, left % 1000000000};
                timeout = &wait;
                break;
            }
            last_sent = send_one();
            if (!sent) first_sent = last_sent;
            if (last_sent - due > late) late = last_sent - due;
        }
        int n = epoll_pwait2(epoll, ready, AT_ONCE, timeout, NULL);
        for (int i = 0; i < n; i++) receive(ready[i].data.ptr);
    }
    double wall_s = (now_ns() - first_sent) / 1e9;
    double cpu_s = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - startup_cpu) / 1e9;

    qsort(ttfts, count, sizeof *ttfts, ascending);
    printf("{\"requests\": %ld, \"tokens\": %ld, \"cpu_s\": %.6f, \"startup_cpu_s\": %.6f, \"wall_s\": %.6f, "
           "\"achieved_rps\": %.3f, \"late_p99_ms\": null, \"late_max_ms\": %.3f, "
           "\"ttft_p50_ms\": %.3f, \"ttft_p99_ms\": %.3f, \"reads_unfinished\": %ld, \"peak_mb\": %.3f}\n",
           done, tokens_seen, cpu_s, startup_cpu / 1e9, wall_s,
           last_sent > first_sent ? (count - 1) / ((last_sent - first_sent) / 1e9) : 0.0, late / 1e6,
           ttfts[count / 2] / 1e6, ttfts[count * 99 / 100] / 1e6, unfinished, peak_mb());
    return 0;
}
