/// Where PostgreSQL is and how a client uses it.
public struct PostgresConfiguration: Sendable {
    /// A URL or keyword string as libpq reads it. It can hold a password and is never printed.
    let connectionString: String

    /// Connections that the statements of all requests share.
    public var sharedConnections = 4
    /// Connections for transactions, opened when they are needed.
    public var leasedConnections = 4
    /// Requests under way on one shared connection before further ones wait.
    public var pipelineDepth = 32
    /// Requests that wait for a connection before further ones are refused at once.
    public var queueLimit = 4_096
    /// How long a request waits for a connection before it is refused.
    public var acquireTimeout = Duration.seconds(2)
    /// How long the opening of a connection may take.
    public var connectTimeout = Duration.seconds(5)
    /// `statement_timeout` of every session.
    public var statementTimeout = Duration.seconds(10)
    /// `lock_timeout` of every session.
    public var lockTimeout = Duration.seconds(5)
    /// `idle_in_transaction_session_timeout` of every session.
    public var idleInTransactionTimeout = Duration.seconds(30)
    /// How long a connection may stay silent while statements are under way, before it is given up. Longer than
    /// ``statementTimeout``, so that the server speaks first.
    public var silenceTimeout = Duration.seconds(20)
    /// How long a connection that served a transaction is kept for the next one.
    public var leasedIdleTimeout = Duration.seconds(60)
    /// `search_path` of every session.
    public var searchPath = "saltern, pg_temp"
    /// `application_name`, unless the connection string has one.
    public var applicationName = "saltern"
    /// The first and the longest wait before a connection is opened again.
    public var backOff: ClosedRange<Duration> = .milliseconds(100)...(.seconds(5))

    /// Checks a connection string (`SALTERN_DATABASE_URL`).
    /// - Throws: ``PostgresError/configuration(_:)`` with a message that quotes nothing of it.
    public init(_ connectionString: String) throws(PostgresError) {
        self.connectionString = connectionString
    }
}

extension PostgresConfiguration: CustomStringConvertible, CustomReflectable {
    public var description: String { "PostgresConfiguration(redacted)" }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
