public import HTTPCore
internal import Postgres

/// Where log lines go. Called from any thread; must not block for long.
public protocol LogSink: Sendable {
    /// Takes one line, which ends in a line feed.
    func write(_ line: ZeroizingBuffer, level: LogLevel)
    /// The number of lines that were lost, since the start.
    var droppedLines: Int { get }
}

extension LogSink {
    /// A sink that loses nothing.
    public var droppedLines: Int { 0 }
}

/// The log: one JSON object a line with time, level, event and typed members.
///
/// It holds no userid, key, verifier, token, share id, body, header or SQL value: ``LogValue`` says what can be
/// written at all.
public struct Log: Sendable {
    private let minimumLevel: LogLevel
    private let sink: any LogSink
    private let now: @Sendable () -> UTCTimestamp

    /// - Parameters:
    ///   - minimumLevel: Lines below it are not made.
    ///   - sink: Where lines go.
    ///   - now: The time of a line.
    public init(minimumLevel: LogLevel, sink: any LogSink, now: @escaping @Sendable () -> UTCTimestamp) {
        self.minimumLevel = minimumLevel
        self.sink = sink
        self.now = now
    }

    /// Whether a line of this level would be written.
    public func isEnabled(_ level: LogLevel) -> Bool { level >= minimumLevel }

    /// The number of lines that were lost, since the start.
    public var droppedLines: Int { sink.droppedLines }

    /// Writes a line.
    /// - Parameters:
    ///   - level: How much it matters.
    ///   - event: What happened, a fixed name such as `server_started`.
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

    /// Writes the line of a finished request: a failure of the server as an error, everything else as info.
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
