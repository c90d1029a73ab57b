/* Has valgrind's callgrind count instructions between two calls: a process asks for it by macros that only C has. */
#include <valgrind/callgrind.h>

void begin_count(void)
{
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

void end_count(void)
{
    CALLGRIND_DUMP_STATS_AT("count");
    CALLGRIND_STOP_INSTRUMENTATION;
}
