public import HTTPCore
public import Postgres

/// A value that may stand in a log line.
///
/// `String` is not one on purpose: text that a client sent (a userid, a key, a token, a share id, a header) cannot
/// reach the log without somebody conforming its type, which is the moment to think again.
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
    /// A reason in words; it holds nothing that came over the network.
    public func writeLogValue(to writer: inout JSONWriter) { writer.string(description) }
}

extension SQLState: LogValue {
    public func writeLogValue(to writer: inout JSONWriter) { writer.string(code) }
}

/// The text of an error that the operator caused or has to mend (a file that cannot be read, a port that is taken);
/// never text that came over the network.
public struct OperatorText: LogValue {
    let text: String
    public init(_ text: String) { self.text = text }
    public func writeLogValue(to writer: inout JSONWriter) { writer.string(text) }
}
