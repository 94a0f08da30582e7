public import HTTPCore
public import SalternServer
internal import Synchronization

/// Keeps every log line, so that a test can look for what must and must not be there.
public final class CapturedLog: LogSink {
    private let captured = Mutex<[String]>([])

    public init() {}

    public func write(_ line: ZeroizingBuffer, level: LogLevel) {
        captured.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
    }

    /// The lines so far.
    public var lines: [String] { captured.withLock { $0 } }
}
