// For LD_PRELOAD: kills a program with SIGKILL at one of the calls by which it changes files.
//
//   KILL_PROGRAM   the name of its executable; its children go on
//   KILL_AT        which call, from 1 on
//   KILL_WITHIN    set: when half of what the call writes is written; else before it
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;
static long last;
static int is_within;

__attribute__((constructor)) static void begin(void) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    const char *program = getenv("KILL_PROGRAM"), *at = getenv("KILL_AT");
    if (length <= 0 || !program || !at) return;
    path[length] = 0;
    const char *name = strrchr(path, '/');
    if (!name || strcmp(name + 1, program) != 0) return;
    last = atol(at);
    is_within = getenv("KILL_WITHIN") != NULL;
}

static int is_last(void) { return last > 0 && atomic_fetch_add(&calls, 1) + 1 == last; }

static void end(void) { kill(getpid(), SIGKILL); }

// The function that comes after this library's of the same name.
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// What is done whole or not at all.
#define WHOLE(type, name, parameters, arguments)      \
    type name parameters {                            \
        if (is_last()) end();                         \
        return REAL(name) arguments;                  \
    }

WHOLE(int, ftruncate, (int file, off_t size), (file, size))
WHOLE(int, ftruncate64, (int file, off64_t size), (file, size))
WHOLE(int, fsync, (int file), (file))
WHOLE(int, fdatasync, (int file), (file))
WHOLE(int, unlink, (const char *path), (path))
WHOLE(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
WHOLE(int, rmdir, (const char *path), (path))
WHOLE(int, remove, (const char *path), (path))
WHOLE(int, mkdir, (const char *path, mode_t mode), (path, mode))
WHOLE(int, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode))
WHOLE(char *, mkdtemp, (char *pattern), (pattern))
WHOLE(int, rename, (const char *from, const char *to), (from, to))
WHOLE(int, renameat, (int one, const char *from, int two, const char *to), (one, from, two, to))
WHOLE(int, renameat2, (int one, const char *from, int two, const char *to, unsigned flags), (one, from, two, to, flags))

// What can be done by halves.
#define PARTLY(name, parameters, half, arguments)     \
    ssize_t name parameters {                         \
        if (is_last()) {                              \
            if (is_within) (void)!REAL(name) half;    \
            end();                                    \
        }                                             \
        return REAL(name) arguments;                  \
    }

PARTLY(write, (int file, const void *bytes, size_t count), (file, bytes, count / 2), (file, bytes, count))
PARTLY(pwrite, (int file, const void *bytes, size_t count, off_t at), (file, bytes, count / 2, at),
       (file, bytes, count, at))
PARTLY(pwrite64, (int file, const void *bytes, size_t count, off64_t at), (file, bytes, count / 2, at),
       (file, bytes, count, at))

// What makes a file when it is asked to.
#define OPENING(name, parameters, arguments)          \
    int name parameters {                             \
        va_list rest;                                 \
        va_start(rest, flags);                        \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                 \
        if (flags & (O_CREAT | O_TRUNC) && is_last()) end(); \
        return REAL(name) arguments;                  \
    }

OPENING(open, (const char *path, int flags, ...), (path, flags, mode))
OPENING(open64, (const char *path, int flags, ...), (path, flags, mode))
OPENING(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
OPENING(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
