#define _GNU_SOURCE
#include "unix_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#define CONTROL_BYTES CMSG_SPACE(sizeof(int) * SALTERN_DESCRIPTOR_LIMIT)

long saltern_send_descriptors(int socket, const void *bytes, size_t length, const int *descriptors, int count) {
    if (count < 0 || count > SALTERN_DESCRIPTOR_LIMIT) return -1;
    _Alignas(struct cmsghdr) char control[CONTROL_BYTES] = {0};
    struct iovec part = {(void *)bytes, length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        const size_t size = sizeof(int) * (size_t)count;
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(header), descriptors, size);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

long saltern_receive_descriptors(int socket, void *bytes, size_t capacity, int *descriptors, int *count) {
    _Alignas(struct cmsghdr) char control[CONTROL_BYTES];
    struct iovec part = {bytes, capacity};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    *count = 0;
    const ssize_t received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (received < 0) return received;
    int total = 0;
    int is_whole = !(message.msg_flags & MSG_CTRUNC);
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        const size_t found = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t index = 0; index < found; index++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + index * sizeof(int), sizeof descriptor);
            if (total < SALTERN_DESCRIPTOR_LIMIT) {
                descriptors[total++] = descriptor;
            } else {
                close(descriptor);
                is_whole = 0;
            }
        }
    }
    if (!is_whole) {
        for (int index = 0; index < total; index++) close(descriptors[index]);
        errno = EMSGSIZE;
        return -1;
    }
    *count = total;
    return received;
}

long saltern_peer_user(int socket) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? (long)peer.uid : -1;
}
