# cython: language_level=3
"""DialectScanner: one pass over the JSON of an event of a Dialect, and one more over the value that
holds its text.

Like `c/json_scan.pxd` it allocates nothing, and returns False where it is not sure:
`loadgen.core.reference_parser` then reads the event, which defines the facts. It is also not sure
of events that only `Dialect.read` understands.
"""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from loadgen.core.c.json_cursor cimport (
    AT_END, AT_VALUE, Cursor, Text, first_key, has_control_char, has_escape, is_new_key, next_key,
    skip_value,
    take_null, take_string, take_word, text_is,
)
from loadgen.core.c.json_scan cimport Delta, begin_event, scan_text
from loadgen.core.event_flags cimport CHOICE, CONTENT, EMPTY, TOKENS


cdef inline int find_text(const Text *among, int count, Text *key) noexcept nogil:
    """Return the number of the text that equals `key`; -1: none does."""
    cdef int i
    for i in range(count):
        if text_is(key, among[i].p, among[i].n):
            return i
    return -1


cdef bint scan_path(Cursor *c, const TextPath *path, int level, Delta *out) noexcept nogil:
    """Scan the value to which the first `level` further keys of a path have led."""
    cdef Text key
    cdef bint ok
    cdef int step, kind = path.flags & TOKENS, seen_keys = 0
    if level == path.further:
        return scan_text(c, out, kind, EMPTY if kind == CONTENT else 0, path.flags & ~TOKENS)
    if take_null(c):
        return True
    step = first_key(c, &key)
    while step == AT_VALUE:
        if text_is(&key, path.keys[level].p, path.keys[level].n):
            ok = is_new_key(&seen_keys, 1) and scan_path(c, path, level + 1, out)
        else:
            ok = skip_value(c)
        step = next_key(c, &key, ok)
    return step == AT_END


@cython.final
cdef class DialectScanner:
    """Reads the events of a dialect.

    Args:
        dialect: The `Dialect`.

    Attributes:
        dialect: The same.
    """

    def __init__(self, dialect):
        self.dialect, self._names = dialect, []
        self._roots_count = self._decisive_count = self._paths_count = self._types_count = 0
        self._type_key = self._text(dialect.type_key)
        for key in dialect.decisive:
            self._decisive[self._decisive_count] = self._text(key)
            self._decisive_count += 1
        for name, where in dialect.texts.items():
            self._add(name, [(path.split("."), flags) for path, flags in where.items()])
        for name in dialect.silent:
            self._add(name, [])

    cdef Text _text(self, str name):
        cdef Text text
        cdef bytes held = name.encode()
        self._names.append(held)
        text.p, text.n = PyBytes_AS_STRING(held), PyBytes_GET_SIZE(held)
        return text

    cdef int _add(self, str name, list paths) except -1:
        """Add a type of event with its texts: none if it says nothing."""
        cdef EventType *added = &self._types[self._types_count]
        cdef TextPath *path
        cdef Text root
        cdef int i
        self._types_count += 1
        added.name, added.first = self._text(name), self._paths_count
        for keys, flags in paths:
            path = &self._paths[self._paths_count]
            self._paths_count += 1
            root = self._text(keys[0])
            path.root = find_text(self._roots, self._roots_count, &root)
            path.further = len(keys) - 1
            path.flags = flags
            if path.root < 0:
                path.root = self._roots_count
                self._roots[self._roots_count] = root
                self._roots_count += 1
            for i in range(path.further):
                path.keys[i] = self._text(keys[i + 1])
        added.end = self._paths_count
        return 0

    cdef bint scan(self, const char *p, Py_ssize_t n, Delta *out) noexcept nogil:
        """Fill `out` from one event's JSON object; return False if it must be read in Python."""
        cdef Cursor c
        cdef Cursor[MAX_ROOTS] at  # at the values of the first keys of paths
        cdef Text key
        cdef Text name
        cdef EventType *event_type
        cdef const TextPath *path
        cdef bint ok
        cdef int i, step, root, seen_roots = 0, seen_keys = 0
        if has_control_char(p, n):
            return False
        begin_event(&c, p, n, out)
        name.p, name.n = p, 0
        step = first_key(&c, &key)
        while step == AT_VALUE:
            root = find_text(self._roots, self._roots_count, &key)
            if root >= 0:
                at[root] = c
                ok = is_new_key(&seen_roots, 1 << root) and skip_value(&c)
            elif text_is(&key, self._type_key.p, self._type_key.n):
                ok = is_new_key(&seen_keys, 1) and take_string(&c, &name)
                ok = ok and not has_escape(&c, &name)
            elif text_is(&key, b"error", 5):
                ok = is_new_key(&seen_keys, 2) and take_null(&c)
            elif text_is(&key, b"object", 6):
                ok = False
            elif find_text(self._decisive, self._decisive_count, &key) >= 0:
                ok = take_null(&c) or take_word(&c, b"false", 5)
            else:
                ok = skip_value(&c)
            step = next_key(&c, &key, ok)
        if step != AT_END or c.p != c.end:
            return False
        for i in range(self._types_count):
            event_type = &self._types[i]
            if text_is(&name, event_type.name.p, event_type.name.n):
                break
        else:
            return False
        if event_type.first == event_type.end:
            return True
        out.says |= CHOICE
        for i in range(event_type.first, event_type.end):
            path = &self._paths[i]
            if seen_roots & (1 << path.root):
                c = at[path.root]
                if not scan_path(&c, path, 0, out):
                    return False
        return True
