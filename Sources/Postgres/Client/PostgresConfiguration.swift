internal import CLibPQ
internal import Glibc

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

extension PostgresConfiguration {
    /// Checks the options with libpq, which does so only when it connects: here, to sockets in a folder that cannot
    /// exist.
    /// - Throws: ``PostgresError/configuration(_:)`` when no server could be connected to with them.
    static func check(_ options: [(keyword: String, value: String)]) throws(PostgresError) {
        func count(_ keyword: String) -> Int {
            let value = options.last { $0.keyword == keyword }?.value ?? ""
            return value.isEmpty ? 0 : value.count { $0 == "," } + 1
        }
        let (hosts, addresses) = (count("host"), count("hostaddr"))
        guard hosts == 0 || addresses == 0 || hosts == addresses else {
            throw .configuration(ConnectionFailure.option("host").description)
        }
        let isElsewhere =
            options.contains { $0.keyword == "service" }
            || ["PGHOST", "PGHOSTADDR", "PGSERVICE"].contains { (name: String) in getenv(name) != nil }
        // Options from elsewhere are checked when a connection is opened.
        if isElsewhere, hosts == 0 || getenv("PGHOSTADDR") != nil { return }
        let places = Array(repeating: "/dev/null", count: max(hosts, addresses, 1)).joined(separator: ",")
        let others = options.filter { $0.keyword != "host" && $0.keyword != "hostaddr" }
        guard let handle = ConnectionHandle(starting: others + [("host", places)]) else { return }
        let message = String(cString: PQerrorMessage(handle.pointer))
        // With valid options, libpq only reports sockets. Each of them is a line with a further, indented one.
        let lines = message.split(separator: "\n").filter { !$0.contains("\"/dev/null/") && !$0.hasPrefix("\t") }
        guard !lines.isEmpty, let keyword = ConnectionFailure.unknownOption(in: message) else { return }
        throw .configuration(ConnectionFailure.option(keyword).description)
    }
}

extension PostgresConfiguration {
    var poolSettings: PoolStateMachine<Execution>.Settings {
        PoolStateMachine.Settings(
            readConnections: readConnections, commitConnections: commitConnections,
            leasedConnections: leasedConnections, pipelineDepth: pipelineDepth, queueLimit: queueLimit,
            backOff: backOff, leasedIdleTimeout: leasedIdleTimeout)
    }

    /// The maximum number of simultaneous connections of a client. One of them probes for a takeover.
    public var connectionCount: Int { readConnections + commitConnections + leasedConnections + 1 }

    /// Returns libpq's options. Later keywords take precedence.
    /// - Parameter lane: Added to the application's name, except behind a pooler that exchanges sessions. Such a pooler
    ///   would send the name again whenever a session changes lanes.
    func connectionOptions(for lane: PoolLane? = nil) -> [(keyword: String, value: String)] {
        let told = pooling == .session ? lane.map { " \($0)" } ?? "" : ""
        return [("fallback_application_name", applicationName + told)] + options + [("client_encoding", "UTF8")]
    }
}

extension PostgresConfiguration {
    /// The connection arguments for PostgreSQL's own programs.
    ///
    /// Every user of the machine can read a program's arguments, so secrets go into its environment.
    public struct ProgramConnection: Sendable {
        /// The value of `--dbname`: everything but the password, in keyword form.
        public let string: String
        /// The password in the URL, if any, for `PGPASSWORD`.
        public let password: String?
    }

    /// Secrets that PostgreSQL's programs accept in no variable of the environment.
    private static let secrets = ["sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret"]

    /// The connection for PostgreSQL's own programs.
    /// - Throws: ``PostgresError/configuration(_:)`` if it has a secret that would be an argument of theirs.
    public var programConnection: ProgramConnection {
        get throws(PostgresError) {
            if let secret = Self.secrets.first(where: { value(of: $0) != nil }) {
                throw .configuration(
                    "PostgreSQL's programs accept \(secret) of the database URL only as an argument, which every user of "
                        + "this machine can read: move it to a service in pg_service.conf, and name that with service=")
            }
            // Without a limit they wait for an unresponsive address as long as the kernel does.
            let shown =
                options.filter { $0.keyword != "password" && $0.keyword != "connect_timeout" }
                + [(keyword: "connect_timeout", value: String(connectTimeout.components.seconds))]
            let words = shown.map { option in "\(option.keyword)='\(Self.quoted(option.value))'" }
            return ProgramConnection(string: words.joined(separator: " "), password: password)
        }
    }

    /// The password in the connection string, if any.
    public var password: String? { value(of: "password") }

    /// The role of the connection; nil if the string names none.
    public var user: String? { value(of: "user") }

    /// The name of the database. Without one, PostgreSQL uses the name of the role.
    public var databaseName: String? { value(of: "dbname") ?? user }

    private func value(of keyword: String) -> String? { options.last { $0.keyword == keyword }?.value }

    private static func quoted(_ value: String) -> String {
        // Scalars, because a quote and a combining mark are one character.
        var quoted = String.UnicodeScalarView()
        for scalar in value.unicodeScalars {
            if scalar == "'" || scalar == "\\" { quoted.append("\\") }
            quoted.append(scalar)
        }
        return String(quoted)
    }
}

/// The password file that libpq would read, with its permissions checked beforehand.
///
/// libpq itself reports a bad file on standard error, for each connection and in the middle of other output.
struct PasswordFile {
    let path: String
    /// True if a setting names the file; false for the default path.
    let isNamed: Bool

    /// A path at which no file can exist.
    static let nowhere = "/dev/null/none"

    /// - Parameters:
    ///   - options: The options of the connection string.
    ///   - variable: Reads an environment variable.
    init?(_ options: [(keyword: String, value: String)], variable: (String) -> String?) {
        func option(_ keyword: String) -> String? { options.last { $0.keyword == keyword }?.value }
        // libpq reads the file only if no password is given. It resolves services itself.
        for password in [option("password"), variable("PGPASSWORD")] where password?.isEmpty == false { return nil }
        guard option("service") == nil, variable("PGSERVICE") == nil else { return nil }
        if let named = [option("passfile"), variable("PGPASSFILE")].compactMap(\.self).first(where: { !$0.isEmpty }) {
            path = named
            isNamed = true
        } else if let home = variable("HOME") {
            path = home + "/.pgpass"
            isNamed = false
        } else {
            return nil
        }
    }

    /// The reason why libpq would reject the file; nil if it would read it, or if there is none.
    var refusal: String? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        if status.st_mode & S_IFMT != S_IFREG { return "it is not a regular file" }
        return status.st_mode & 0o077 == 0 ? nil : "other users can read or write it: run chmod 600 on it"
    }

    /// Returns the options with which to replace `options`.
    /// - Throws: ``PostgresError/configuration(_:)`` when a setting names a file that libpq would reject.
    static func settle(
        _ options: [(keyword: String, value: String)],
        variable: (String) -> String? = { getenv($0).map { String(cString: $0) } }
    ) throws(PostgresError) -> [(keyword: String, value: String)] {
        guard let file = PasswordFile(options, variable: variable), let refusal = file.refusal else { return options }
        if file.isNamed { throw .configuration("the password file \(file.path) is not usable: \(refusal)") }
        return options.filter { $0.keyword != "passfile" } + [("passfile", nowhere)]
    }
}
