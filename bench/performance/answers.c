// The fastest server that one thread gives: it answers each request for embeddings after a constant time, with one write
// of the same bytes, so that a client and not the server is what a test finds the limit of.
//
//     answers DELAY_MS
//
// It listens on a free port of 127.0.0.1, prints its URL, and serves until it is stopped. Requests do not overlap on a
// connection. GET /v1/models names its model, GET /connections tells how many connections it has accepted.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_BYTES 16384
#define AT_ONCE 1024
#define BACKLOG 4096
#define NICENESS -10  // where the system allows it: a server that waits for a core is no server to measure with

typedef struct Connection {
    int fd, size;               // fd is -1: closed while its answer waits
    long due_ns;                // of its answer; 0: none waits
    struct Connection *next;    // of those that wait
    char bytes[REQUEST_BYTES];  // of a request that has not come whole, or is not answered
} Connection;

static const char MODELS[] = "{\"object\":\"list\",\"data\":[{\"id\":\"answers\",\"object\":\"model\"}]}";
static const char EMBEDDING[] =
    "{\"object\":\"list\",\"model\":\"answers\",\"data\":[{\"object\":\"embedding\",\"index\":0,\"embedding\":"
    "[0.0123,-0.0456,0.0789,0.0012,-0.0345,0.0678,0.0901,-0.0234]}],"
    "\"usage\":{\"prompt_tokens\":128,\"total_tokens\":128}}";

static int epoll;
static long accepted, delay_ns;
static Connection *first, **last = &first;  // that wait for their answers, the next one first
static char embedding[1024];
static int embedding_size;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int write_answer(char *into, const char *status, const char *body) {
    return sprintf(into, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status,
                   strlen(body), body);
}

static void answer(Connection *c) {
    char other[1024], count[64];
    const char *bytes = other;
    int size;
    if (!strncmp(c->bytes, "POST /v1/embeddings ", 20)) {
        bytes = embedding;
        size = embedding_size;
    } else if (!strncmp(c->bytes, "GET /v1/models ", 15)) {
        size = write_answer(other, "200 OK", MODELS);
    } else if (!strncmp(c->bytes, "GET /connections ", 17)) {
        sprintf(count, "%ld", accepted);
        size = write_answer(other, "200 OK", count);
    } else {
        size = write_answer(other, "404 Not Found", "{}");
    }
    if (write(c->fd, bytes, size) != size && errno != EPIPE && errno != ECONNRESET) fail("write");
}

static int is_whole(const Connection *c) {
    const char *head_end = strstr(c->bytes, "\r\n\r\n");
    if (!head_end) return 0;
    const char *length = strcasestr(c->bytes, "\r\ncontent-length:");
    long body = length && length < head_end ? atol(length + 17) : 0;
    return c->bytes + c->size >= head_end + 4 + body;
}

static long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void receive(Connection *c) {
    ssize_t size = read(c->fd, c->bytes + c->size, REQUEST_BYTES - 1 - c->size);
    if (size <= 0) {  // closed, or a request that is too long
        close(c->fd);
        c->fd = -1;
        if (!c->due_ns) free(c);
        return;
    }
    c->size += size;
    c->bytes[c->size] = 0;
    if (c->due_ns || !is_whole(c)) return;
    c->due_ns = now_ns() + delay_ns;
    c->next = NULL;
    *last = c;
    last = &c->next;
}

// Answers all that are due, and returns how long it takes until the next one is, ns; -1: none waits.
static long answer_due(void) {
    while (first) {
        Connection *c = first;
        long left_ns = c->due_ns - now_ns();
        if (left_ns > 0) return left_ns;
        if (!(first = c->next)) last = &first;
        c->due_ns = c->size = 0;
        if (c->fd < 0)
            free(c);
        else
            answer(c);
    }
    return -1;
}

static void accept_all(int listener) {
    int on = 1;
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0; accepted++) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        Connection *c = malloc(sizeof *c);
        c->fd = fd;
        c->size = 0;
        c->due_ns = 0;
        struct epoll_event event = {EPOLLIN, {.ptr = c}};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    }
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: answers DELAY_MS\n");
        return 2;
    }
    delay_ns = atof(arguments[1]) * 1e6;
    signal(SIGPIPE, SIG_IGN);
    setpriority(PRIO_PROCESS, 0, NICENESS);
    embedding_size = write_answer(embedding, "200 OK", EMBEDDING);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    if (bind(listener, (void *)&here, size) || listen(listener, BACKLOG)) fail("listen");
    if (getsockname(listener, (void *)&here, &size)) fail("getsockname");
    printf("listening on http://127.0.0.1:%d\n", ntohs(here.sin_port));
    fflush(stdout);
    epoll = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {.ptr = NULL}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    static struct epoll_event ready[AT_ONCE];
    for (;;) {
        long left_ns = answer_due();
        struct timespec left = {left_ns / 1000000000, left_ns % 1000000000};
        int n = epoll_pwait2(epoll, ready, AT_ONCE, left_ns < 0 ? NULL : &left, NULL);
        for (int i = 0; i < n; i++) {
            if (ready[i].data.ptr)
                receive(ready[i].data.ptr);
            else
                accept_all(listener);
        }
    }
}
