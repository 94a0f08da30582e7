// What Linux and glibc offer a process and Swift's module of the C library lacks.
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/vfs.h>

// prctl is variadic, which Swift cannot call.
static inline int saltern_forbid_dumps(void) {
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

// The names of mallopt's parameters are macros.
static inline int saltern_bound_allocator(int arenas, int mapped_from, int trim_from) {
    return mallopt(M_ARENA_MAX, arenas) && mallopt(M_MMAP_THRESHOLD, mapped_from) &&
           mallopt(M_TRIM_THRESHOLD, trim_from);
}

// In Swift, mallinfo2() makes an empty structure of that name.
static inline long saltern_free_heap_bytes(void) { return (long)mallinfo2().fordblks; }

#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

// Swift's module of the C library lacks it, and syscall is variadic.
static inline int saltern_renameat2(int from, const char *name, int to, const char *new_name, unsigned flags) {
    return (int)syscall(SYS_renameat2, from, name, to, new_name, flags);
}

#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#define SALTERN_DESCRIPTOR_LIMIT 128

// Control messages are made and read with macros. Sends `length` bytes, and descriptors with them (unix(7), SCM_RIGHTS).
static inline ssize_t saltern_send_descriptors(int socket, const void *bytes, size_t length, const int *descriptors,
                                               int count) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * SALTERN_DESCRIPTOR_LIMIT)];
    struct iovec part = {(void *)bytes, length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count < 0 || count > SALTERN_DESCRIPTOR_LIMIT) return -1;
    if (count > 0) {
        memset(control, 0, sizeof control);
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
        memcpy(CMSG_DATA(header), descriptors, sizeof(int) * (size_t)count);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

// Receives bytes, and into `descriptors`, which has room for SALTERN_DESCRIPTOR_LIMIT, what comes with them.
static inline ssize_t saltern_receive_descriptors(int socket, void *bytes, size_t capacity, int *descriptors,
                                                  int *count) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * SALTERN_DESCRIPTOR_LIMIT)];
    struct iovec part = {bytes, capacity};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    *count = 0;
    ssize_t received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (received < 0) return received;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        size_t size = header->cmsg_len - CMSG_LEN(0);
        memcpy(descriptors, CMSG_DATA(header), size);
        *count = (int)(size / sizeof(int));
    }
    return received;
}
