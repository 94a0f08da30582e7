// For a program that waits: its clocks that count from the machine's start run HURRY times as fast, and its waits are as
// much shorter. The wall clock is left as it is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

#define NAMED(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define SECOND 1000000000LL

static int64_t factor = 1;
static int64_t bases[16];
static int clocks[4096];

static int64_t number(struct timespec t) { return t.tv_sec * SECOND + t.tv_nsec; }
static struct timespec moment(int64_t n) { return (struct timespec){n / SECOND, n % SECOND}; }
static int is_fast(clockid_t clock) {
    return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_MONOTONIC_COARSE
        || clock == CLOCK_BOOTTIME;
}

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("HURRY");
    int64_t wanted = text ? atoll(text) : 1;
    for (int clock = 0; clock < 16; clock++) {
        struct timespec now;
        if (is_fast(clock) && NAMED(clock_gettime)(clock, &now) == 0) bases[clock] = number(now);
    }
    factor = wanted > 0 ? wanted : 1;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = NAMED(clock_gettime)(clock, now);
    if (result == 0 && is_fast(clock)) *now = moment(bases[clock] + (number(*now) - bases[clock]) * factor);
    return result;
}

int timerfd_create(int clock, int flags) {
    int timer = NAMED(timerfd_create)(clock, flags);
    if (timer >= 0 && timer < 4096) clocks[timer] = clock;
    return timer;
}

int timerfd_settime(int timer, int flags, const struct itimerspec *wanted, struct itimerspec *before) {
    struct itimerspec next = *wanted;
    int clock = timer >= 0 && timer < 4096 ? clocks[timer] : CLOCK_MONOTONIC;
    int64_t value = number(wanted->it_value);
    if (is_fast(clock) && value > 0) {
        int64_t base = flags & TFD_TIMER_ABSTIME ? bases[clock] : 0;
        value = base + (value - base) / factor;
        next.it_value = moment(value > 0 ? value : 1);
        next.it_interval = moment(number(wanted->it_interval) / factor);
    }
    return NAMED(timerfd_settime)(timer, flags, &next, before);
}

static int shorter(int milliseconds) {
    if (milliseconds <= 0) return milliseconds;
    return milliseconds > factor ? (int)(milliseconds / factor) : 1;
}

int poll(struct pollfd *files, nfds_t count, int milliseconds) {
    return NAMED(poll)(files, count, shorter(milliseconds));
}

int epoll_wait(int set, struct epoll_event *events, int count, int milliseconds) {
    return NAMED(epoll_wait)(set, events, count, shorter(milliseconds));
}

int nanosleep(const struct timespec *wanted, struct timespec *left) {
    struct timespec next = moment(number(*wanted) / factor);
    return NAMED(nanosleep)(&next, left);
}
