/// Holds a value of a loop's thread, and can be passed to other threads. Every access checks the thread.
// Safe to share: `value` is the only access, and it stops the program on another thread.
public struct LoopBound<Value>: @unchecked Sendable {
    /// The loop that the value belongs to.
    public let loop: EventLoop
    private let stored: Value

    /// Holds `value`. The caller is on `loop`.
    public init(_ value: Value, loop: EventLoop) {
        loop.preconditionInLoop()
        self.loop = loop
        stored = value
    }

    /// The value. The caller is on ``loop``.
    public var value: Value {
        loop.preconditionInLoop()
        return stored
    }
}
