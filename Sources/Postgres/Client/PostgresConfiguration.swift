internal import CLibPQ

/// Where PostgreSQL is and how a client uses it.
public struct PostgresConfiguration: Sendable {
    /// Keywords and values as libpq reads them. One can be a password: they are never printed.
    let options: [(keyword: String, value: String)]

    /// Connections that the requests which only read share.
    public var readConnections = 4
    /// Connections that the single requests which write share.
    public var commitConnections = 2
    /// Connections for transactions, opened when they are needed.
    public var leasedConnections = 4
    /// Requests under way on one shared connection before further ones wait.
    public var pipelineDepth = 32
    /// Requests that wait for a connection before further ones are refused at once.
    public var queueLimit = 4_096
    /// How long a request waits for a connection before it is refused; later than that it is not sent once more either.
    public var acquireTimeout = Duration.seconds(2)
    /// How long the opening of a connection may take (`connect_timeout` in the connection string).
    public var connectTimeout = Duration.seconds(5)
    /// `statement_timeout` of every session; zero for none.
    public var statementTimeout = Duration.seconds(10)
    /// `lock_timeout` of shared connections, where nobody may wait: what meets a lock goes on alone.
    public var sharedLockTimeout = Duration.milliseconds(5)
    /// `lock_timeout` of whoever has a connection for itself; zero for none.
    public var lockTimeout = Duration.seconds(5)
    /// `idle_in_transaction_session_timeout` of every session; zero for none.
    public var idleInTransactionTimeout = Duration.seconds(30)
    /// How long a connection may stay silent while statements are under way, before it is given up. Longer than
    /// ``statementTimeout``, so that the server speaks first.
    public var silenceTimeout = Duration.seconds(20)
    /// How long a connection may commit without a word before further writes are refused.
    public var commitPatience = Duration.seconds(1)
    /// How long a server may be silent, while it opens a connection or has something to answer, before the client looks
    /// whether another one has taken over; and how long that look waits for each answer of each server, within
    /// ``connectTimeout`` in all.
    public var takeoverPatience = Duration.seconds(1)
    /// How long a connection that served a transaction is kept for the next one.
    public var leasedIdleTimeout = Duration.seconds(60)
    /// `search_path` of every session.
    public var searchPath = "saltern, pg_temp"
    /// Whether the planner may read whole tables. A server turns it off: PostgreSQL keeps the plan of a prepared statement,
    /// and one that was made while a table was small reads all of it once it is large. Not set where `pooling` leaves the
    /// settings of sessions to the database.
    public var allowsSequentialScans = true
    /// What is between here and the server.
    public var pooling = SessionPooling.session
    /// `application_name`, unless the connection string has one. Behind it comes what each connection is for (`saltern reads`).
    public var applicationName = "saltern"
    /// What is done on every new connection before anybody else may use it, with the time-outs of a connection of its own.
    /// When it throws, the connection is closed, and opened again later. What the error says of itself goes to ``observer``:
    /// it must quote nothing that came over the network.
    public var onConnected: (@Sendable (PostgresLease) async throws -> Void)?
    /// Is told what is nobody's result, such as why connections cannot be opened. Called on the client's loop.
    public var observer: (@Sendable (PostgresEvent) -> Void)?
    /// The first and the longest wait before a connection is opened again.
    public var backOff: ClosedRange<Duration> = .milliseconds(100)...(.seconds(2))

    /// Reads a URL or keyword string (`SALTERN_DATABASE_URL`); everything that libpq knows passes through.
    /// - Throws: ``PostgresError/configuration(_:)`` with a message that quotes nothing of it but the path of a password file that
    ///   libpq would refuse, also when libpq does not know one of the values.
    public init(_ connectionString: String) throws(PostgresError) {
        var message: UnsafeMutablePointer<CChar>?
        guard let parsed = PQconninfoParse(connectionString, &message) else {
            // libpq's message quotes the string, and with it perhaps a password.
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
            // Of a password with a slash, what is between the colon and the slash counts as a port.
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

    /// Returns whether the host of a URL has an @. libpq takes what is behind the first @ for the host, if no slash comes first.
    private static func hasTwoSigns(_ text: String) -> Bool {
        guard isURL(text), let start = text.firstRange(of: "://")?.upperBound,
            let sign = text[start...].firstIndex(where: { $0 == "@" || $0 == "/" }), text[sign] == "@"
        else { return false }
        return text[text.index(after: sign)...].prefix { $0 != "/" && $0 != "?" }.contains("@")
    }

    /// Returns whether a URL has its first @ behind a slash, where libpq takes what is in front of the slash for host and port.
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
