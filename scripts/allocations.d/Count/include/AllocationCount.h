#include <stddef.h>

/// How often this process has asked for memory.
size_t allocation_count(void);
