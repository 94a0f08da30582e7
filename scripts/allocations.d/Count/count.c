// Counts what is allocated: these functions take the place of glibc's, and call them.

#include "AllocationCount.h"
#include <stdatomic.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_size_t count;

size_t allocation_count(void) { return atomic_load(&count); }

void *malloc(size_t size) {
    atomic_fetch_add(&count, 1);
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    atomic_fetch_add(&count, 1);
    return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size) {
    atomic_fetch_add(&count, 1);
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    atomic_fetch_add(&count, 1);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    atomic_fetch_add(&count, 1);
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : 12;
}
