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
