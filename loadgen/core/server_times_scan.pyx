# cython: language_level=3
"""Reads the times that a server says in the event that ends an answer, once for each request.

Like `c/json_scan.pxd` it returns False where it is not sure; `loadgen.core.server_times`, whose
table it follows, then reads the event.
"""
from libc.string cimport memchr, memcpy
from libc.stdint cimport int64_t
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from loadgen.core.c.json_cursor cimport (
    AT_END, AT_VALUE, MAX_NUMBER, Cursor, Text, first_key, is_new_key, next_key, skip_value,
    take_number, text_is,
)
from loadgen.core.c.json_scan cimport Delta
from loadgen.core.c.server_times cimport NOT_SAID, TIMES, ServerTimes, clear_times

from loadgen.core import server_times

cdef extern from "math.h":
    long long llrint(double) nogil

cdef extern from "Python.h":
    double PyOS_string_to_double(const char *text, char **end, void *overflow) except? -1.0

cdef enum:
    MAX_KEYS = 32
    MAX_SAYINGS = 16

cdef struct Key:
    Text name
    int quantity
    bint begins  # the quantity: another key ends it

cdef struct Saying:
    int place  # of the member that holds it, among PLACES_OF_TIMES
    int by
    int first, end  # its keys
    double unit_ns

cdef Key[MAX_KEYS] keys
cdef Saying[MAX_SAYINGS] sayings
cdef int sayings_count = 0
cdef double max_ns = server_times.MAX_NS
cdef list names = []  # bytes that the keys point into
PLACES = ("metrics", "timings", "stats", "time_info", server_times.USAGE, "meta_info")


cdef int add_sayings() except -1:
    """Fill the table from that in Python."""
    global sayings_count
    cdef int count = 0
    cdef bytes name
    for said in server_times.SAYINGS:
        sayings[sayings_count] = Saying(
            PLACES.index(said.where), server_times.BY.index(said.by) + 1, count,
            count + len(said.keys), said.unit_ns
        )
        sayings_count += 1
        for key, end in said.keys.items():
            name = key.encode()
            names.append(name)
            keys[count].name = Text(PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
            keys[count].begins = end.startswith(server_times.BEGINS)
            keys[count].quantity = server_times.QUANTITIES.index(
                end.removeprefix(server_times.BEGINS)
            )
            count += 1
    return 0


add_sayings()


cdef bint scan_times(const Delta *delta, ServerTimes *said):
    """Read the times that an event says; return False if it must be read in Python."""
    cdef int i
    clear_times(said)
    for i in range(sayings_count):
        if delta.times_at & (1 << sayings[i].place):
            if not scan_member(&delta.times[sayings[i].place], &sayings[i], said):
                return False
            if said.by:
                return True
    return True


cdef bint scan_member(const Text *member, const Saying *saying, ServerTimes *said):
    """Read the times of one member; `said.by` remains 0 if there are none."""
    cdef Cursor c
    cdef Text key
    cdef bint ok
    cdef int step, i, quantity, seen_keys = 0, missing = 0
    cdef int64_t ns = NOT_SAID
    cdef int64_t[TIMES] sums
    c.p, c.end = member.p, member.p + member.n
    c.has_escapes = memchr(member.p, b"\\", member.n) != NULL
    for i in range(TIMES):
        sums[i] = 0
    step = first_key(&c, &key)
    while step == AT_VALUE:
        for i in range(saying.first, saying.end):
            if text_is(&key, keys[i].name.p, keys[i].name.n):
                ok = is_new_key(&seen_keys, 1 << (i - saying.first))
                ok = ok and take_time(&c, saying.unit_ns, &ns)
                if ns == NOT_SAID:
                    missing |= 1 << keys[i].quantity
                else:
                    sums[keys[i].quantity] += -ns if keys[i].begins else ns
                break
        else:
            ok = skip_value(&c)
        step = next_key(&c, &key, ok)
    if step != AT_END:
        return False
    for i in range(saying.first, saying.end):
        if not seen_keys & (1 << (i - saying.first)):
            missing |= 1 << keys[i].quantity
    for i in range(saying.first, saying.end):
        quantity = keys[i].quantity
        if not missing & (1 << quantity) and sums[quantity] >= 0:
            said.ns[quantity] = sums[quantity]
            said.by = saying.by
    return True


cdef bint take_time(Cursor *c, double unit_ns, int64_t *ns):
    """Step over a value; `ns` becomes the time that it says, NOT_SAID if it is none."""
    cdef const char *start = c.p
    cdef char[MAX_NUMBER + 1] text
    cdef double value
    ns[0] = NOT_SAID
    if c.p >= c.end or not (b"0" <= c.p[0] <= b"9"):
        return c.p < c.end and c.p[0] != b"-" and skip_value(c)
    if not take_number(c):
        return False
    memcpy(text, start, c.p - start)
    text[c.p - start] = 0
    value = PyOS_string_to_double(text, NULL, NULL) * unit_ns
    if value < max_ns:
        ns[0] = llrint(value)
    return True
