public import HTTPCore
public import Postgres

/// The destination of log lines. It is called from any thread and must not block for long.
public protocol LogSink: Sendable {
    /// Writes one line, which ends in a line feed.
    func write(_ line: ZeroizingBuffer, level: LogLevel)
    /// The number of lines lost since the start.
    var droppedLines: Int { get }
}

extension LogSink {
    /// The default for destinations that lose no lines.
    public var droppedLines: Int { 0 }
}

/// The log: one JSON object a line with time, level, event and typed members.
///
/// It contains no userid, key, verifier, token, share id, body, header or SQL value: only types with ``LogValue`` can
/// be written.
public struct Log: Sendable {
    private let minimumLevel: LogLevel
    private let sink: any LogSink
    private let now: @Sendable () -> UTCTimestamp

    /// - Parameters:
    ///   - minimumLevel: Lines below it are discarded.
    ///   - sink: The destination of lines.
    ///   - now: The time of a line.
    public init(minimumLevel: LogLevel, sink: any LogSink, now: @escaping @Sendable () -> UTCTimestamp) {
        self.minimumLevel = minimumLevel
        self.sink = sink
        self.now = now
    }

    /// Returns true if lines of this level are written.
    public func isEnabled(_ level: LogLevel) -> Bool { level >= minimumLevel }

    /// The number of lines lost since the start.
    public var droppedLines: Int { sink.droppedLines }

    /// Writes a line.
    ///
    /// - Parameters:
    ///   - level: The severity.
    ///   - event: A fixed name such as `server_started`.
    ///   - members: Further members, in order.
    public func write(
        _ level: LogLevel, _ event: StaticString, _ members: KeyValuePairs<StaticString, any LogValue> = [:]
    ) {
        guard isEnabled(level) else { return }
        write(level, event) { writer in
            for (name, value) in members {
                writer.name(String(describing: name))
                value.writeLogValue(to: &writer)
            }
        }
    }

    /// Writes one line with numbers.
    public func write(_ level: LogLevel, _ event: StaticString, numbers: [(name: StaticString, number: Int)]) {
        guard isEnabled(level) else { return }
        write(level, event) { writer in
            for (name, number) in numbers { writer.member(String(describing: name), number) }
        }
    }

    /// Writes the line of a finished request: server failures as errors, all others as info.
    public func write(_ record: RequestRecord) {
        let level: LogLevel = record.statusClass == 5 ? .error : .info
        guard isEnabled(level) else { return }
        write(level, "request") { writer in
            writer.name("requestId")
            writer.requestID(record.requestID)
            writer.member("route", record.route)
            writer.member("status", Int(record.status.code))
            writer.name("durationMicroseconds")
            record.duration.writeLogValue(to: &writer)
            if let accountID = record.accountID {
                writer.name("accountId")
                writer.uuid(accountID)
            }
            if let code = record.problemCode { writer.member("code", code) }
            if let trace = record.trace { writer.members(trace) }
        }
    }

    private func write(_ level: LogLevel, _ event: StaticString, _ body: (inout JSONWriter) -> Void) {
        var writer = JSONWriter(capacity: 320)
        writer.object { writer in
            writer.member("time", now())
            writer.member("level", level.rawValue)
            writer.member("event", String(describing: event))
            body(&writer)
        }
        sink.write(writer.finishLine(), level: level)
    }
}

/// The severity of a log line.
public enum LogLevel: String, Sendable, CaseIterable, Comparable {
    case debug, info, warning, error

    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rank < right.rank }

    private var rank: Int {
        switch self {
        case .debug: 0
        case .info: 1
        case .warning: 2
        case .error: 3
        }
    }
}

/// A value that may be written to the log.
///
/// `String` does not conform, so that text from clients (a userid, key, token, share id or header) cannot reach the
/// log. Conforming another type requires a review.
public protocol LogValue: Sendable {
    func writeLogValue(to writer: inout JSONWriter)
}

extension Int: LogValue {
    public func writeLogValue(to writer: inout JSONWriter) { writer.integer(Int64(self)) }
}

extension Bool: LogValue {
    public func writeLogValue(to writer: inout JSONWriter) { writer.bool(self) }
}

extension StaticString: LogValue {
    public func writeLogValue(to writer: inout JSONWriter) { writer.string(String(describing: self)) }
}

extension Duration: LogValue {
    /// Whole microseconds.
    public func writeLogValue(to writer: inout JSONWriter) {
        let (seconds, attoseconds) = components
        writer.integer(seconds * 1_000_000 + attoseconds / 1_000_000_000_000)
    }
}

extension Postgres.UUID: LogValue {
    public func writeLogValue(to writer: inout JSONWriter) { writer.uuid(self) }
}

extension RequestID: LogValue {
    public func writeLogValue(to writer: inout JSONWriter) { writer.requestID(self) }
}

extension PostgresError: LogValue {
    /// SQLSTATE, constraint and statement; a `PostgresError` prints no values.
    public func writeLogValue(to writer: inout JSONWriter) { writer.string(description) }
}

extension ConnectionFailure: LogValue {
    /// The reason as fixed text, without content from the network.
    public func writeLogValue(to writer: inout JSONWriter) { writer.string(description) }
}

extension SQLState: LogValue {
    public func writeLogValue(to writer: inout JSONWriter) { writer.string(code) }
}

/// The text of an error for the operator to correct, such as an unreadable file or an occupied port. It must never
/// contain text from the network.
public struct OperatorText: LogValue {
    let text: String
    public init(_ text: String) { self.text = text }
    public func writeLogValue(to writer: inout JSONWriter) { writer.string(text) }
}

/// A problem for the operator to correct. The reply omits the reason, which is written to the log.
protocol OperatorProblem: ProblemConvertible {
    /// Writes the reason as an error.
    func write(to log: Log, requestID: RequestID)
}
