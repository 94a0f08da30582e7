internal import CLibEvent
internal import Glibc

/// Owner of one `event_base *`.
///
/// The base is made without libevent's locks: only its loop's thread may touch it, and other threads wake
/// that thread through a descriptor.
final class EventBase {
    let pointer: OpaquePointer

    init() throws(EventLoopError) {
        guard let config = event_config_new() else { throw .outOfMemory }
        defer { event_config_free(config) }
        event_config_set_flag(config, CInt(EVENT_BASE_FLAG_NOLOCK.rawValue))
        event_config_set_flag(config, CInt(EVENT_BASE_FLAG_IGNORE_ENV.rawValue))
        // One epoll_ctl for several changes of a descriptor in a turn; safe because no descriptor is dup'ed.
        event_config_set_flag(config, CInt(EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST.rawValue))
        guard let base = event_base_new_with_config(config) else { throw .system(operation: "event_base_new", errno) }
        pointer = base
    }

    deinit { event_base_free(pointer) }

    /// Waits for readiness or a timer when `blocking`, and calls the handlers of what is due.
    func dispatch(blocking: Bool) {
        let flags = CInt(EVLOOP_ONCE) | (blocking ? CInt(EVLOOP_NO_EXIT_ON_EMPTY) : CInt(EVLOOP_NONBLOCK))
        event_base_loop(pointer, flags)
    }
}
