public import HTTPCore
public import SalternServer
internal import Synchronization

/// Keeps all log lines, so that a test can search for required and forbidden text.
public final class CapturedLog: LogSink {
    private let captured = Mutex<[String]>([])

    public init() {}

    public func write(_ line: ZeroizingBuffer, level: LogLevel) {
        captured.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
    }

    /// The lines so far.
    public var lines: [String] { captured.withLock { $0 } }
}
