/// How long work lets others have their turn: whoever has more to do than a ``slice`` gives way after each.
///
/// The application is given the pace of its loop, where a turn ends after one slice, whoever did it. So however many
/// requests are being parsed, everybody else waits for one slice at most.
public struct Pace: Sendable {
    /// Bytes that are parsed, decoded or written before others have their turn: about a tenth of a millisecond, and a
    /// few milliseconds for the worst that can be sent.
    public static let slice = 128 * 1_024

    private let pause: @Sendable () async -> Void

    /// - Parameter pause: Returns when the others have had their turn.
    public init(_ pause: @escaping @Sendable () async -> Void) { self.pause = pause }

    /// Lets the jobs that are waiting run first.
    public static let yielding = Pace { await Task.yield() }

    /// Lets others have their turn.
    public func giveWay() async { await pause() }
}
