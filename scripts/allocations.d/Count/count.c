// Counts what is allocated: these functions take the place of glibc's, and call them.
//
// As a part of a program it is asked by allocation_count(); loaded before another program's libraries (LD_PRELOAD), it
// keeps the count in the file that ALLOCATION_COUNT names, eight bytes in the machine's order.

#include "AllocationCount.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_size_t own_count;
static atomic_size_t *count = &own_count;

size_t allocation_count(void) { return atomic_load(count); }

__attribute__((constructor)) static void keep_count_in_file(void) {
    const char *path = getenv("ALLOCATION_COUNT");
    if (!path) return;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || ftruncate(file, sizeof own_count) != 0) abort();
    void *memory = mmap(NULL, sizeof own_count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) abort();
    count = memory;
    close(file);
}

void *malloc(size_t size) {
    atomic_fetch_add(count, 1);
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    atomic_fetch_add(count, 1);
    return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size) {
    atomic_fetch_add(count, 1);
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    atomic_fetch_add(count, 1);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    atomic_fetch_add(count, 1);
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : 12;
}
