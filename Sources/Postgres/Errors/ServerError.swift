internal import CLibPQ

/// An error of the server, without its detail, hint and context, which quote values of rows.
public struct ServerError: Error, Sendable {
    /// The error's code.
    public let state: SQLState
    /// The type of the statement that failed.
    public internal(set) var statement: String
    /// Names that the server adds to some errors.
    public let schema: String?
    public let table: String?
    public let column: String?
    public let constraint: String?
    /// The server's primary message. It can quote a value (`invalid input syntax for type uuid: "…"`), so
    /// ``description`` never contains it. Show it to developers only.
    public let unredactedMessage: String

    init(
        state: SQLState, statement: String = "", schema: String? = nil, table: String? = nil, column: String? = nil,
        constraint: String? = nil, unredactedMessage: String = ""
    ) {
        self.state = Self.isNodeLost(state, unredactedMessage) ? .connectionFailure : state
        self.statement = statement
        self.schema = schema
        self.table = table
        self.column = column
        self.constraint = constraint
        self.unredactedMessage = unredactedMessage
    }

    /// Returns true if a cluster lost a node during a transaction. Citus has no code for this (`remote_transaction.c`).
    private static func isNodeLost(_ state: SQLState, _ message: String) -> Bool {
        state == .internalError && message.hasPrefix("failure on connection marked as essential")
    }
}

extension ServerError: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String {
        var text = "SQLSTATE \(state.named)"
        if !statement.isEmpty { text += " in \(statement)" }
        for (label, name) in [("table", table), ("column", column), ("constraint", constraint)] {
            if let name { text += ", \(label) \(name)" }
        }
        return text
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["state": state.code, "statement": statement]) }
}

extension ServerError {
    /// Reads the error of a result. Returns `nil` if libpq reported it instead of the server.
    init?(result: OpaquePointer) {
        // Field codes are characters (postgres_ext.h).
        func field(_ code: Unicode.Scalar) -> String? {
            PQresultErrorField(result, CInt(code.value)).map { String(cString: $0) }
        }
        guard let state = field("C") else { return nil }
        self.init(
            state: SQLState(state), schema: field("s"), table: field("t"), column: field("c"),
            constraint: field("n"), unredactedMessage: field("M") ?? "")
    }
}
