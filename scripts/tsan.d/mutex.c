// Tells ThreadSanitizer what Swift's Mutex does when two threads want it at once.
//
// On Linux the uncontended path of Synchronization.Mutex is compiled into the caller, where the sanitizer sees its
// atomics. The contended path is in libswiftSynchronization, which is not instrumented: the sanitizer would miss that
// the lock changed hands there, and report races that are none. These two functions take the place of the library's,
// call them, and say what happened.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

#define swift_function __attribute__((swiftcall))
#define swift_self __attribute__((swift_context))

void __tsan_acquire(void *address);
void __tsan_release(void *address);

swift_function void lock_slow(uint32_t thread, swift_self void *mutex) __asm__(LOCK_SLOW);
swift_function void unlock_slow(swift_self void *mutex) __asm__(UNLOCK_SLOW);

swift_function void lock_slow(uint32_t thread, swift_self void *mutex) {
    swift_function void (*original)(uint32_t, swift_self void *) = dlsym(RTLD_NEXT, LOCK_SLOW);
    original(thread, mutex);
    __tsan_acquire(mutex);
}

swift_function void unlock_slow(swift_self void *mutex) {
    swift_function void (*original)(swift_self void *) = dlsym(RTLD_NEXT, UNLOCK_SLOW);
    __tsan_release(mutex);
    original(mutex);
}
