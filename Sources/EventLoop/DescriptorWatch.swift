internal import CLibEvent
internal import Glibc

/// Reports the readiness of one descriptor to a handler on the loop's thread.
///
/// Level-triggered: the handler is called in every iteration of the loop while reading is on and bytes are there. Not
/// `Sendable`: it lives and ends on its loop. Call ``cancel()`` before the descriptor is closed.
public final class DescriptorWatch {
    /// The operations that a descriptor permits without blocking.
    public enum Readiness: Sendable {
        case readable, writable
    }

    private let loop: EventLoop
    private var handler: ((Readiness) -> Void)?
    private var readEvent: OpaquePointer?
    private var writeEvent: OpaquePointer?
    private var isReading = false
    private var isWriting = false

    private static let callback: event_callback_fn = { _, what, context in
        guard let context else { return }
        let watch = Unmanaged<DescriptorWatch>.fromOpaque(context).takeUnretainedValue()
        watch.handler?(what & CShort(EV_READ) != 0 ? .readable : .writable)
    }

    /// Watches `descriptor`, which the caller keeps open until ``cancel()``. Starts without interest in either
    /// operation.
    public init(loop: EventLoop, descriptor: CInt, handler: @escaping (Readiness) -> Void) {
        loop.preconditionInLoop()
        self.loop = loop
        self.handler = handler
        // The events hold this object unretained. `deinit` frees them before the memory of the object.
        let context = Unmanaged.passUnretained(self).toOpaque()
        let base = loop.base.pointer
        readEvent = event_new(base, descriptor, CShort(EV_READ | EV_PERSIST), Self.callback, context)
        writeEvent = event_new(base, descriptor, CShort(EV_WRITE | EV_PERSIST), Self.callback, context)
        precondition(readEvent != nil && writeEvent != nil, "out of memory")
    }

    /// Starts or stops the watch for reading.
    public func setReading(_ enabled: Bool) {
        guard enabled != isReading, let readEvent else { return }
        isReading = enabled
        if enabled { event_add(readEvent, nil) } else { event_del(readEvent) }
    }

    /// Starts or stops the watch for writing.
    public func setWriting(_ enabled: Bool) {
        guard enabled != isWriting, let writeEvent else { return }
        isWriting = enabled
        if enabled { event_add(writeEvent, nil) } else { event_del(writeEvent) }
    }

    /// Ends the watch and releases the handler. Further calls have no effect.
    public func cancel() {
        loop.preconditionInLoop()
        if let readEvent { event_free(readEvent) }
        if let writeEvent { event_free(writeEvent) }
        readEvent = nil
        writeEvent = nil
        handler = nil
    }

    deinit {
        precondition(readEvent == nil, "a watch must be cancelled on its loop before it is freed")
    }
}

/// A file descriptor with one owner, closed with it.
public struct OwnedDescriptor: ~Copyable, Sendable {
    /// The descriptor, for system calls during the owner's life.
    public let rawValue: CInt

    /// Takes ownership of `descriptor`, the result of a system call that may have failed.
    /// - Throws: ``EventLoopError/system(operation:_:)`` with `errno` when it is negative.
    public init(takingOwnershipOf descriptor: CInt, from operation: String = "open") throws(EventLoopError) {
        guard descriptor >= 0 else { throw .system(operation: operation, errno) }
        rawValue = descriptor
    }

    /// Duplicates `descriptor`. Programs that this process starts do not inherit the copy.
    public init(copying descriptor: CInt) throws(EventLoopError) {
        try self.init(takingOwnershipOf: fcntl(descriptor, F_DUPFD_CLOEXEC, 0), from: "fcntl")
    }

    /// Transfers the descriptor to the caller, which closes it.
    public consuming func release() -> CInt {
        let descriptor = rawValue
        discard self
        return descriptor
    }

    deinit { _ = close(rawValue) }
}
