// What unix(7) offers by way of macros, and Swift's module of the C library lacks.
#pragma once
#include <stddef.h>

// How many descriptors go with one message (SCM_MAX_FD).
#define SALTERN_DESCRIPTOR_LIMIT 253

// Sends bytes, and descriptors with them (SCM_RIGHTS). As send(2) answers.
long saltern_send_descriptors(int socket, const void *bytes, size_t length, const int *descriptors, int count);

// Receives bytes, and into `descriptors`, which has room for SALTERN_DESCRIPTOR_LIMIT, what comes with them. As recv(2)
// answers. What is received is the caller's to close, and is not given to programs that the process starts.
long saltern_receive_descriptors(int socket, void *bytes, size_t capacity, int *descriptors, int *count);

// The user whose process is at the other end (SO_PEERCRED); -1 when that is not known.
long saltern_peer_user(int socket);
