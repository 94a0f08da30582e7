internal import CLibEvent

/// A timer that calls its handler on the loop's thread, once for each ``schedule(after:)``.
///
/// Not `Sendable`: it lives and ends on its loop. Call ``cancel()`` at the end of its use.
public final class LoopTimer {
    private let loop: EventLoop
    private var handler: (() -> Void)?
    private var event: OpaquePointer?

    private static let callback: event_callback_fn = { _, _, context in
        guard let context else { return }
        Unmanaged<LoopTimer>.fromOpaque(context).takeUnretainedValue().handler?()
    }

    /// Creates a timer, which does not run yet.
    public init(loop: EventLoop, handler: @escaping () -> Void) {
        loop.preconditionInLoop()
        self.loop = loop
        self.handler = handler
        // The event holds this object unretained. `deinit` checks that the event was freed first.
        let context = Unmanaged.passUnretained(self).toOpaque()
        event = event_new(loop.base.pointer, -1, 0, Self.callback, context)
        precondition(event != nil, "out of memory")
    }

    /// Fires after `delay`, instead of an earlier scheduled time. A negative delay counts as zero.
    public func schedule(after delay: Duration) {
        loop.preconditionInLoop()
        guard let event else { return }
        let (seconds, attoseconds) = max(delay, .zero).components
        var time = timeval(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
        event_add(event, &time)
    }

    /// Stops the timer until it is scheduled again.
    public func pause() {
        loop.preconditionInLoop()
        if let event { event_del(event) }
    }

    /// Ends the timer and releases the handler. Further calls have no effect.
    public func cancel() {
        loop.preconditionInLoop()
        if let event { event_free(event) }
        event = nil
        handler = nil
    }

    deinit {
        precondition(event == nil, "a timer must be cancelled on its loop before it is freed")
    }
}
