/// The suspension of long work for other work. Work above a ``slice`` suspends after each slice.
///
/// The application uses the pace of its loop, where an iteration ends after one slice. Other work therefore waits for
/// at most one slice, independent of the number of long requests.
public struct Pace: Sendable {
    /// The bytes that are parsed, decoded or written before a suspension. They take about 0.1 ms, and a few
    /// milliseconds in the worst case.
    public static let slice = 128 * 1_024

    private let pause: @Sendable () async -> Void

    /// - Parameter pause: Returns after other work has run.
    public init(_ pause: @escaping @Sendable () async -> Void) { self.pause = pause }

    /// Runs the waiting jobs first.
    public static let yielding = Pace { await Task.yield() }

    /// Suspends the task until other work has run.
    public func giveWay() async { await pause() }
}
