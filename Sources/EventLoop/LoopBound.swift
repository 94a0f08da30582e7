/// A value that belongs to a loop's thread, in a box that may travel: every access checks the thread.
// Safe to share: the value is reached through `value` only, which stops the program off the loop's thread.
public struct LoopBound<Value>: @unchecked Sendable {
    /// The loop that the value belongs to.
    public let loop: EventLoop
    private let stored: Value

    /// Boxes `value`; the caller must be on `loop`.
    public init(_ value: Value, loop: EventLoop) {
        loop.preconditionInLoop()
        self.loop = loop
        stored = value
    }

    /// The value; the caller must be on ``loop``.
    public var value: Value {
        loop.preconditionInLoop()
        return stored
    }
}
