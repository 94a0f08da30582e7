internal import CLibPQ

/// The reason why a statement has no result. Neither its cases nor its description contain values of rows or
/// parameters.
///
/// Indirect, so that throwing functions reserve space for a reference instead of the largest case.
public indirect enum PostgresError: Error, Sendable {
    /// The server rejected the statement. Its whole group or transaction had no effect.
    case server(ServerError)
    /// The connection ended during the statement, which may have taken effect.
    case connectionLost
    /// The statement was not sent: no connection became free in time, the queue is full, or the client is shutting
    /// down.
    ///
    /// The duration is a suitable delay before the next attempt. `because` is the reason why connections could not be
    /// opened, if that was the cause.
    case unavailable(retryAfter: Duration, because: ConnectionFailure? = nil)
    /// The statement was not sent, because the queue for its key is full.
    case queueFull
    /// The server did not reply in time, and the connection was closed. The statement may have taken effect.
    case timedOut
    /// The change has taken effect, but the server that continues may lack it.
    ///
    /// Either the server sent a warning during the commit, or another server has taken over meanwhile
    /// (``ConnectionEpoch``).
    case commitInDoubt
    /// A row does not match the statement's type.
    case decoding(DecodingFailure)
    /// The task was cancelled. A statement that had been sent may have taken effect.
    case cancelled
    /// The connection string or another setting is invalid.
    case configuration(String)

    /// The server's code, if the server rejected the statement.
    public var sqlState: SQLState? {
        if case .server(let error) = self { return error.state }
        return nil
    }

    /// Returns true if the server rejected this one of several statements.
    public func isOf(_ statement: any Statement.Type) -> Bool {
        if case .server(let error) = self { return error.statement == StatementCatalog.name(of: statement) }
        return false
    }

    /// The violated constraint, if the server names one.
    public var constraint: String? {
        if case .server(let error) = self { return error.constraint }
        return nil
    }

    /// True if the schema lacks an object that the statement names.
    public var isAboutSchema: Bool {
        [.undefinedTable, .undefinedColumn, .undefinedFunction, .invalidSchemaName].contains(sqlState)
    }

    /// True if the same request may succeed after a short delay.
    public var isTransient: Bool {
        switch self {
        case .server(let error): error.state.isTransient
        case .connectionLost, .unavailable, .queueFull, .timedOut, .commitInDoubt: true
        case .decoding, .cancelled, .configuration: false
        }
    }
}

extension PostgresError {
    /// Returns the error with the name of the statement that caused it.
    func naming(_ statement: String) -> PostgresError {
        switch self {
        case .server(var error):
            error.statement = statement
            return .server(error)
        case .decoding(var failure):
            failure.statement = statement
            return .decoding(failure)
        default:
            return self
        }
    }
}

extension PostgresError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .server(let error): error.description
        case .connectionLost: "the connection to PostgreSQL was lost during a statement"
        case .unavailable(let delay, nil):
            "no connection to PostgreSQL was free in time, or another request of the same account, share or userid did "
                + "not end; try again in \(delay)"
        case .unavailable(_, let reason?): "no connection to PostgreSQL could be opened: \(reason)"
        case .queueFull: "too many requests wait for the same account, share or userid"
        case .commitInDoubt: "the transaction was committed, but the new primary may not have the change"
        case .timedOut: "PostgreSQL did not answer in time"
        case .decoding(let failure): failure.description
        case .cancelled: "the statement's task was cancelled"
        case .configuration(let message): message
        }
    }
}

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
    /// True if the error is that of another node of a cluster.
    let isOfOtherNode: Bool
    /// True if another node of a cluster may have committed before its connection failed.
    let isCommitUnknown: Bool

    /// - Parameter function: The server's function that reported the error, if it sent the name.
    init(
        state: SQLState, statement: String = "", schema: String? = nil, table: String? = nil, column: String? = nil,
        constraint: String? = nil, unredactedMessage: String = "", function: String? = nil
    ) {
        isOfOtherNode = function == Self.reportOfOtherNode
        isCommitUnknown = state == .internalError && function == "ErrorIfPostCommitFailedShardPlacements"
        let isNodeLost = isCommitUnknown || state == .internalError && Self.isNodeLost(unredactedMessage, isOfOtherNode)
        self.state = isNodeLost ? .connectionFailure : state
        self.statement = statement
        self.schema = schema
        self.table = table
        self.column = column
        self.constraint = constraint
        self.unredactedMessage = unredactedMessage
    }

    /// The function of Citus that repeats a node's error (`remote_commands.c`).
    private static let reportOfOtherNode = "ReportResultError"
    /// The beginnings of libpq's messages about lost connections. Citus repeats them without a code.
    private static let losses = [
        "connection not open", "no connection to the server", "server closed the connection unexpectedly",
        "could not receive data from server", "could not send data to server", "SSL connection has been closed",
        "SSL SYSCALL error", "SSL error", "connection error",
    ]

    /// Returns true if a cluster lost a node during a transaction. Citus has no code for this (`remote_transaction.c`).
    private static func isNodeLost(_ message: String, _ isOfOtherNode: Bool) -> Bool {
        message.hasPrefix("failure on connection marked as essential")
            || isOfOtherNode && (message.isEmpty || losses.contains { message.hasPrefix($0) })
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
            constraint: field("n"), unredactedMessage: field("M") ?? "", function: field("R"))
    }
}

/// A column of a result that could not be decoded, with the reason.
public struct DecodingFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of fault.
    public enum Reason: Error, Sendable, Equatable {
        /// The column is NULL, and the statement's type is not optional.
        case null
        /// The column has another type. Both values are `oid`s.
        case type(expected: UInt32, found: UInt32)
        /// The bytes are not a value of the type.
        case malformed
        /// The result has fewer columns than expected, or another number of rows.
        case missing
    }

    /// The statement's type; empty until the client fills it in.
    public internal(set) var statement = ""
    /// The column, counted from 0.
    public let column: Int
    /// The fault of the column.
    public let reason: Reason

    public var description: String {
        let what =
            switch reason {
            case .null: "is NULL"
            case .type(let expected, let found): "has type \(found) instead of \(expected)"
            case .malformed: "is malformed"
            case .missing: "is missing"
            }
        return "\(statement): column \(column) \(what)"
    }
}
