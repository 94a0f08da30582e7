internal import EventLoop
public import HTTPServer
public import Postgres
internal import Synchronization

extension PostgresConfiguration {
    /// Returns a configuration with time limits that no test reaches, even on a busy machine.
    public static func patient(_ url: String) throws(PostgresError) -> PostgresConfiguration {
        var configuration = try PostgresConfiguration(url)
        configuration.becomePatient()
        return configuration
    }

    /// Raises all time limits above the needs of a busy machine.
    public mutating func becomePatient() {
        acquireTimeout = .seconds(120)
        connectTimeout = .seconds(60)
        statementTimeout = .seconds(120)
        lockTimeout = .seconds(60)
        commitPatience = .seconds(120)
        silenceTimeout = .seconds(180)
        takeoverPatience = .seconds(120)
        idleInTransactionTimeout = .seconds(900)
    }
}

extension HTTPServerConfiguration {
    /// Raises the time limits of clients' requests above the needs of a busy machine.
    public mutating func becomePatient() {
        handshakeDeadline = .seconds(300)
        headerDeadline = .seconds(300)
        bodyWindow = .seconds(300)
        writeDeadline = .seconds(300)
    }
}

/// Sessions for scripts that stay open between them. Opening a session is more work than most scripts.
final class KeptSessions: Sendable {
    private let configuration: PostgresConfiguration
    private let loop: EventLoop
    private let idle = Mutex<LoopBound<IdleSessions>?>(nil)

    /// The sessions without a script. They belong to the loop.
    private final class IdleSessions {
        var connections: [ScriptConnection] = []
    }

    init(_ url: String, loop: EventLoop) throws(PostgresError) {
        configuration = try .patient(url)
        self.loop = loop
    }

    /// Runs scripts in order in one session, and keeps the session unless a script has left a transaction open.
    func run(_ scripts: [String]) async throws(PostgresError) {
        try await loop.run { [self] () async throws(PostgresError) in
            let connection = try await takeSession()
            defer { keep(connection) }
            for script in scripts { try await connection.run(script) }
        }
    }

    /// Closes the sessions that run no script.
    func close() async {
        await loop.run { [self] in
            let sessions = idleSessions()
            for connection in sessions.connections { connection.close() }
            sessions.connections = []
        }
    }

    private func takeSession() async throws(PostgresError) -> ScriptConnection {
        let sessions = idleSessions()
        while let connection = sessions.connections.popLast() {
            // The end of a database ends its sessions.
            if connection.isIdle { return connection }
            connection.close()
        }
        return try await ScriptConnection.open(configuration, loop: loop)
    }

    private func keep(_ connection: ScriptConnection) {
        if connection.isIdle { idleSessions().connections.append(connection) } else { connection.close() }
    }

    private func idleSessions() -> IdleSessions {
        idle.withLock { idle in
            let sessions = idle ?? LoopBound(IdleSessions(), loop: loop)
            idle = sessions
            return sessions
        }.value
    }
}

extension KeptSessions {
    private static let administrators = Mutex<[String: KeptSessions]>([:])

    /// The sessions of this process that create and drop databases. They stay open until its end.
    static func ofAdministrator(_ url: String) throws -> KeptSessions {
        try administrators.withLock { administrators in
            if let sessions = administrators[url] { return sessions }
            let loop = try EventLoop(name: "test databases")
            try loop.start()
            let sessions = try KeptSessions(url, loop: loop)
            administrators[url] = sessions
            return sessions
        }
    }
}

extension KeptSessions {
    /// Runs scripts that need a database without other connections, and repeats them while there are some.
    ///
    /// On a busy machine, the end of a session takes longer than PostgreSQL waits for it, which is five seconds.
    func runPatiently(_ scripts: [String]) async throws(PostgresError) {
        for _ in 0..<24 {
            do {
                return try await run(scripts)
            } catch {
                guard error.sqlState == .objectInUse else { throw error }
            }
        }
        try await run(scripts)
    }
}

/// Clients of one role that stay connected between their uses. Connecting is more work than most uses.
final class KeptClients: Sendable {
    private let settings: PostgresConfiguration
    private let loop: EventLoop
    private let idle = Mutex<[PostgresClient]>([])

    init(_ url: String, loop: EventLoop) throws(PostgresError) {
        var settings = try PostgresConfiguration.patient(url)
        settings.readConnections = 1
        settings.commitConnections = 1
        settings.leasedConnections = 1
        self.settings = settings
        self.loop = loop
    }

    /// Runs `body` on the loop with a client that no other call uses. After an error the client is not used again.
    func run<Result: Sendable>(
        _ body: @escaping @Sendable (PostgresClient) async throws -> Result
    ) async throws -> Result {
        try await loop.run { [self] in
            let client =
                idle.withLock { $0.popLast() } ?? PostgresClient(configuration: settings, loop: loop)
            do {
                let result = try await body(client)
                idle.withLock { $0.append(client) }
                return result
            } catch {
                await client.shutdown()
                throw error
            }
        }
    }

    /// Closes the clients that are not in use.
    func close() async {
        await loop.run { [self] in
            for client in idle.withLock({ $0 }) { await client.shutdown() }
            idle.withLock { $0 = [] }
        }
    }
}
