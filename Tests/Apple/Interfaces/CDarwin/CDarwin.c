#define _GNU_SOURCE
#include "CDarwin.h"

#include <openssl/crypto.h>
#include <string.h>

errno_t memset_s(void *s, rsize_t smax, int c, rsize_t n) {
    (void)smax;
    memset(s, c, n);
    __asm__ volatile("" : : "r"(s) : "memory");
    return 0;
}

int timingsafe_bcmp(const void *b1, const void *b2, size_t len) { return CRYPTO_memcmp(b1, b2, len) != 0; }
