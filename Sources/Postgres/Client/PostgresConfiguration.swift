internal import CLibPQ

/// The location of PostgreSQL, and the settings of a client.
public struct PostgresConfiguration: Sendable {
    /// Keywords and values as libpq reads them. They may contain a password, and are never printed.
    let options: [(keyword: String, value: String)]

    /// The number of shared connections for requests that only read.
    public var readConnections = 4
    /// The number of shared connections for single requests that write.
    public var commitConnections = 2
    /// The maximum number of connections for transactions. They are opened on demand.
    public var leasedConnections = 4
    /// The maximum number of pending requests on one shared connection. Further ones wait.
    public var pipelineDepth = 32
    /// The maximum number of requests that wait for a connection. Further ones fail immediately.
    public var queueLimit = 4_096
    /// The time limit of a request for a connection. After it, the request is not sent again either.
    public var acquireTimeout = Duration.seconds(2)
    /// The time limit for opening a connection (`connect_timeout` in the connection string).
    public var connectTimeout = Duration.seconds(5)
    /// `statement_timeout` of every session; zero for none.
    public var statementTimeout = Duration.seconds(10)
    /// `lock_timeout` of shared connections. A request that meets a lock moves to a dedicated connection.
    public var sharedLockTimeout = Duration.milliseconds(5)
    /// `lock_timeout` of dedicated connections; zero for none.
    public var lockTimeout = Duration.seconds(5)
    /// `idle_in_transaction_session_timeout` of every session; zero for none.
    public var idleInTransactionTimeout = Duration.seconds(30)
    /// The maximum silence of a connection with pending statements, after which it is closed.
    ///
    /// It is longer than ``statementTimeout``, so that the server replies first.
    public var silenceTimeout = Duration.seconds(20)
    /// The maximum silence of a connection during a commit, after which further writes are rejected.
    public var commitPatience = Duration.seconds(1)
    /// The maximum silence of a server, on connecting or with a pending reply, before the client probes for a takeover.
    ///
    /// It is also a probe's limit for each reply of each server, within ``connectTimeout`` in all.
    public var takeoverPatience = Duration.seconds(1)
    /// The time for which an idle connection of transactions is kept.
    public var leasedIdleTimeout = Duration.seconds(60)
    /// `search_path` of every session.
    public var searchPath = "saltern, pg_temp"
    /// True if the planner may read whole tables. A server sets it to false.
    ///
    /// PostgreSQL keeps the plan of a prepared statement. A plan made for a small table reads all of it, even once it
    /// is large. The setting has no effect where `pooling` leaves sessions' settings to the database.
    public var allowsSequentialScans = true
    /// The kind of pooling between this client and the server.
    public var pooling = SessionPooling.session
    /// `application_name`, unless the connection string has one. Each connection appends its use (`saltern reads`).
    public var applicationName = "saltern"
    /// Called on every new connection before its first use, with the time-outs of a dedicated connection.
    ///
    /// If it throws, the connection is closed, and opened again later. The error's description goes to ``observer``, so
    /// it must not quote text from the network.
    public var onConnected: (@Sendable (PostgresLease) async throws -> Void)?
    /// Receives events outside of requests, such as failures to connect. Called on the client's loop.
    public var observer: (@Sendable (PostgresEvent) -> Void)?
    /// The first and the longest delay before a connection is opened again.
    public var backOff: ClosedRange<Duration> = .milliseconds(100)...(.seconds(2))

    /// Reads a URL or keyword string (`SALTERN_DATABASE_URL`). All options of libpq are allowed.
    /// - Throws: ``PostgresError/configuration(_:)`` for an invalid string, or a value that libpq rejects. The message
    ///   quotes nothing of the string, except the path of a password file that libpq would reject.
    public init(_ connectionString: String) throws(PostgresError) {
        var message: UnsafeMutablePointer<CChar>?
        guard let parsed = PQconninfoParse(connectionString, &message) else {
            // libpq's message quotes the string, perhaps with a password.
            PQfreemem(message)
            let hint = Self.isURL(connectionString) ? "; \(Self.escapes)" : ""
            throw .configuration("the database URL is neither a PostgreSQL URL nor a keyword string\(hint)")
        }
        defer { PQconninfoFree(parsed) }
        var options: [(keyword: String, value: String)] = []
        var option = parsed
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val {
                options.append((String(cString: keyword), String(cString: value)))
            }
            option += 1
        }
        if Self.hasTwoSigns(connectionString) {
            throw .configuration("the database URL has more than one @ in front of the path; \(Self.escapes)")
        }
        options = try PasswordFile.settle(options)
        self.options = options
        if let value = options.first(where: { $0.keyword == "connect_timeout" })?.value {
            guard let seconds = Int(value), seconds >= 0 else {
                throw .configuration("connect_timeout in the database URL is not a number of seconds")
            }
            if seconds > 0 { connectTimeout = .seconds(seconds) }
        }
        do throws(PostgresError) {
            try Self.check(options)
        } catch {
            // In a password with a slash, the text between colon and slash counts as a port.
            guard Self.hasLateSign(connectionString),
                case .configuration(ConnectionFailure.option("port").description) = error
            else { throw error }
            throw .configuration("\(error); \(Self.escapes)")
        }
    }

    /// The advice for a URL whose password is not percent-encoded.
    private static let escapes =
        "in a URL, the characters : / ? # [ ] @ and % of a user or a password are written percent-encoded (@ is %40, / "
        + "is %2F)"

    private static func isURL(_ text: String) -> Bool {
        text.hasPrefix("postgresql://") || text.hasPrefix("postgres://")
    }

    /// Returns true if the host of a URL contains an @. libpq's host begins after the first @, if no slash precedes it.
    private static func hasTwoSigns(_ text: String) -> Bool {
        guard isURL(text), let start = text.firstRange(of: "://")?.upperBound,
            let sign = text[start...].firstIndex(where: { $0 == "@" || $0 == "/" }), text[sign] == "@"
        else { return false }
        return text[text.index(after: sign)...].prefix { $0 != "/" && $0 != "?" }.contains("@")
    }

    /// Returns true if a URL has its first @ after a slash. libpq then reads the text before the slash as host and
    /// port.
    private static func hasLateSign(_ text: String) -> Bool {
        guard isURL(text), let start = text.firstRange(of: "://")?.upperBound,
            let slash = text[start...].firstIndex(where: { $0 == "@" || $0 == "/" }), text[slash] == "/"
        else { return false }
        return text[slash...].contains("@")
    }
}

extension PostgresConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "PostgresConfiguration(redacted)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
