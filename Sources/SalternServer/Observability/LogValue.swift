public import HTTPCore
public import Postgres

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
