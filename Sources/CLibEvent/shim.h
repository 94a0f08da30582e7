// event-config.h defines _GNU_SOURCE. Without this first line a cold build has two definitions of fd_set.
#include <sys/select.h>
#include <event2/event.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

// prctl is variadic. Swift cannot call it. Linux truncates the name after 15 bytes.
static inline void saltern_name_current_thread(const char *name) {
    prctl(PR_SET_NAME, name, 0, 0, 0);
}
