/// Why a statement has no result. Nothing in it, and nothing it prints, holds a value of a row or a parameter.
///
/// Indirect, so that every function that may throw one needs room for a reference and not for the largest case.
public indirect enum PostgresError: Error, Sendable {
    /// The server refused the statement; the whole group or transaction that it belongs to changed nothing.
    case server(ServerError)
    /// The connection ended while the statement was under way: it may or may not have taken effect.
    case connectionLost
    /// The statement was not sent: no connection could be had in time, the queue is full, or the client shuts down.
    /// The duration is a good time to wait before the next attempt; the reason is why connections could not be opened,
    /// if that is what was wrong.
    case unavailable(retryAfter: Duration, because: ConnectionFailure? = nil)
    /// The statement was not sent: as many as may wait for its key are waiting already.
    case queueFull
    /// The server did not answer in time, and the connection was given up: the statement may have taken effect.
    case timedOut
    /// The change has taken effect, but the server that goes on may not have it: the server warned while it committed, or
    /// another one has taken over meanwhile (``ConnectionGeneration``).
    case commitInDoubt
    /// The row is not what the statement's type expects.
    case decoding(DecodingFailure)
    /// The task was cancelled. A statement that was already under way may have taken effect.
    case cancelled
    /// The connection string or another setting is not usable.
    case configuration(String)

    /// The server's code, when the server refused.
    public var sqlState: SQLState? {
        if case .server(let error) = self { return error.state }
        return nil
    }

    /// Whether the server refused this statement of several.
    public func isOf(_ statement: any Statement.Type) -> Bool {
        if case .server(let error) = self { return error.statement == StatementCatalog.name(of: statement) }
        return false
    }

    /// The violated constraint, when the server names one.
    public var constraint: String? {
        if case .server(let error) = self { return error.constraint }
        return nil
    }

    /// Whether the schema does not have what the statement names.
    public var isAboutSchema: Bool {
        [.undefinedTable, .undefinedColumn, .undefinedFunction, .invalidSchemaName].contains(sqlState)
    }

    /// Whether the same request may succeed when it is sent again a little later.
    public var isTransient: Bool {
        switch self {
        case .server(let error): error.state.isTransient
        case .connectionLost, .unavailable, .queueFull, .timedOut, .commitInDoubt: true
        case .decoding, .cancelled, .configuration: false
        }
    }
}

extension PostgresError {
    /// The same error with the name of the statement it happened in.
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
        case .connectionLost: "the connection to PostgreSQL was lost while a statement was under way"
        case .unavailable(let delay, nil):
            "no connection to PostgreSQL was free in time, or another request of the same account, share or userid did "
                + "not end; try again in \(delay)"
        case .unavailable(_, let reason?): "no connection to PostgreSQL could be opened: \(reason)"
        case .queueFull: "too many requests wait for the same account, share or userid"
        case .commitInDoubt: "it was committed, but the server that goes on may not have the change"
        case .timedOut: "PostgreSQL did not answer in time"
        case .decoding(let failure): failure.description
        case .cancelled: "the statement's task was cancelled"
        case .configuration(let message): message
        }
    }
}
