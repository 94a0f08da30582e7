// event-config.h defines _GNU_SOURCE; without this line first, a cold build sees two definitions of fd_set.
#include <sys/select.h>
#include <event2/event.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

// prctl is variadic, which Swift cannot call. Linux cuts the name after fifteen bytes.
static inline void saltern_name_current_thread(const char *name) {
    prctl(PR_SET_NAME, name, 0, 0, 0);
}
