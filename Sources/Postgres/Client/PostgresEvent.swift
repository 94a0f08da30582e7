/// What a client of PostgreSQL has to say that is no request's result. Told once for each change.
public enum PostgresEvent: Sendable, Hashable {
    /// Connections could not be opened, for this reason.
    case cannotConnect(ConnectionFailure)
    /// A connection was opened, after one could not be.
    case connected
    /// A commit does not end: writes are refused until one does.
    case commitsStalled
    /// Commits end again.
    case commitsResumed
    /// A statement that nobody waits for was refused with this code.
    case laterStatementRefused(SQLState)
}
