// Functions of Linux and glibc that Swift's module of the C library lacks.
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/vfs.h>

// prctl is variadic. Swift cannot call it.
static inline int saltern_forbid_dumps(void) {
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

// The names of mallopt's parameters are macros.
static inline int saltern_bound_allocator(int arenas, int mapped_from, int trim_from) {
    return mallopt(M_ARENA_MAX, arenas) && mallopt(M_MMAP_THRESHOLD, mapped_from) &&
           mallopt(M_TRIM_THRESHOLD, trim_from);
}

// Swift imports mallinfo2() as the initialiser of the structure of that name, which is empty.
static inline long saltern_free_heap_bytes(void) { return (long)mallinfo2().fordblks; }

#include <linux/stat.h>
#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

// renameat2 is missing in Swift's module of the C library, and syscall is variadic.
static inline int saltern_renameat2(int from, const char *name, int to, const char *new_name, unsigned flags) {
    return (int)syscall(SYS_renameat2, from, name, to, new_name, flags);
}

// Writes the creation time of a file, without following a link. Returns -1 when the system stores none.
//
// glibc declares statx only with _GNU_SOURCE, which Swift does not set. <fcntl.h> would bring types of Swift's module
// of the C library.
static inline int saltern_birth_time(const char *path, long long *seconds, unsigned *nanoseconds) {
    const int at_fdcwd = -100, at_symlink_nofollow = 0x100;
    struct statx status;
    if (syscall(SYS_statx, at_fdcwd, path, at_symlink_nofollow, STATX_BTIME, &status) != 0) return -1;
    if (!(status.stx_mask & STATX_BTIME)) return -1;
    *seconds = status.stx_btime.tv_sec;
    *nanoseconds = status.stx_btime.tv_nsec;
    return 0;
}
