// event-config.h defines _GNU_SOURCE; without this line first, a cold build sees two definitions of fd_set.
#include <sys/select.h>
#include <event2/event.h>
#include <event2/event_struct.h>
