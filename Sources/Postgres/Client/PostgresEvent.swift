/// What a client of PostgreSQL has to say that is no request's result. Told once for each change.
public enum PostgresEvent: Sendable, Hashable {
    /// Connections could not be opened, for this reason.
    case cannotConnect(ConnectionFailure)
    /// A connection was opened, after one could not be.
    case connected
    /// Another server has taken over from one that was silent: the connections to that one are given up.
    case takenOver
    /// A commit does not end: writes are refused until one does.
    case commitsStalled
    /// Commits end again.
    case commitsResumed
    /// A statement that nobody waits for was refused with this code.
    case laterStatementRefused(SQLState)
}
