#ifndef CDARWIN_H
#define CDARWIN_H

#include <stddef.h>

// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/memset_s.3.html
// (<_string.h>: rsize_t is size_t, errno_t is int)
typedef size_t rsize_t;
typedef int errno_t;
errno_t memset_s(void *s, rsize_t smax, int c, rsize_t n);

// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/timingsafe_bcmp.3.html
int timingsafe_bcmp(const void *b1, const void *b2, size_t len);

#endif
