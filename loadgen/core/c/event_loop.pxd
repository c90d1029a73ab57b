"""What a libuv event loop has to do: inlined C.

libuv offers these functions to programs that wait in place of a loop. uvloop has them in its
extension module, which is loaded already.
"""

cdef extern from *:
    """
    #include <dlfcn.h>
    #include <stddef.h>

    typedef struct {
        void *loop;
        void (*update_time)(void *loop);
        int (*wait_ms)(const void *loop);
    } loadgen_event_loop;

    static inline int loadgen_find_event_loop(
            void *loop, const char *module, loadgen_event_loop *found) {
        void *library = dlopen(module, RTLD_LAZY | RTLD_NOLOAD);
        int (*backend)(const void *);
        if (library == NULL) return -1;
        *(void **)&backend = dlsym(library, "uv_backend_fd");
        *(void **)&found->update_time = dlsym(library, "uv_update_time");
        *(void **)&found->wait_ms = dlsym(library, "uv_backend_timeout");
        dlclose(library);
        if (backend == NULL || found->update_time == NULL || found->wait_ms == NULL) return -1;
        found->loop = loop;
        return backend(loop);
    }

    static inline int loadgen_loop_wait_ms(loadgen_event_loop *event_loop) {
        event_loop->update_time(event_loop->loop);
        return event_loop->wait_ms(event_loop->loop);
    }
    """
    ctypedef struct EventLoop "loadgen_event_loop":
        pass
    # Find the functions for a `uv_loop_t` in the file of uvloop's module. Returns the descriptor
    # that is readable while a file of the loop is; -1: the module does not have them.
    int find_event_loop "loadgen_find_event_loop"(
        void *loop, const char *module, EventLoop *found) noexcept nogil
    # For how long the loop has nothing to do, as far as it knows, ms; -1: until one of its files
    # is readable.
    int loop_wait_ms "loadgen_loop_wait_ms"(EventLoop *event_loop) noexcept nogil
