// Functions of unix(7) that need C macros, which Swift cannot import.
#pragma once
#include <stddef.h>

// The maximum number of descriptors in one message (SCM_MAX_FD).
#define SALTERN_DESCRIPTOR_LIMIT 253

// Sends bytes together with descriptors (SCM_RIGHTS). Returns the result of sendmsg(2), or -1 if `count` is out of
// range.
long saltern_send_descriptors(int socket, const void *bytes, size_t length, const int *descriptors, int count);

// Receives bytes, and descriptors into `descriptors`, which has room for SALTERN_DESCRIPTOR_LIMIT. Returns the result
// of recvmsg(2), or -1 with EMSGSIZE if a descriptor was lost. The caller closes the descriptors, and started programs
// do not inherit them.
long saltern_receive_descriptors(int socket, void *bytes, size_t capacity, int *descriptors, int *count);

// Returns the user id of the process at the other end (SO_PEERCRED), or -1 when it is unknown.
long saltern_peer_user(int socket);
