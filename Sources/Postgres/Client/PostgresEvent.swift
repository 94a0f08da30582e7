/// An event of a client outside of requests. Each change is reported once.
public enum PostgresEvent: Sendable, Hashable {
    /// Connections could not be opened for this reason.
    case cannotConnect(ConnectionFailure)
    /// A connection was opened after a failure.
    case connected
    /// Another server has taken over from a silent one, whose connections are closed.
    case takenOver
    /// A commit does not end. Writes are rejected until one does.
    case commitsStalled
    /// Commits end again.
    case commitsResumed
    /// A background statement was rejected with this code.
    case laterStatementRefused(SQLState)
}
