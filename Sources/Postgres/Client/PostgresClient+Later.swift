internal import EventLoop

/// Statements that nobody waits for, gathered until they are sent together.
struct LaterStatements {
    typealias Send = (PostgresConnection, Execution) -> Void

    /// How long they are gathered, and how many are kept at most.
    static let interval = Duration.seconds(1)
    static let limit = 8_192
    /// How many are sent at a time, so that they get into nobody's way, and the time between two such slices.
    static let slice = 64
    static let pause = Duration.milliseconds(20)

    private var statements: [RequestKey: Send] = [:]
    /// When the next slice is to be sent.
    private(set) var due: ContinuousClock.Instant?
    /// What the last of them that was refused was refused for.
    var lastRefusal: SQLState?

    var count: Int { statements.count }

    /// Keeps `send` in place of an earlier one about the same thing; drops it when there is no room.
    mutating func add(_ key: RequestKey, now: ContinuousClock.Instant, _ send: @escaping Send) {
        guard statements.count < Self.limit || statements[key] != nil else { return }
        statements[key] = send
        if due == nil { due = now + Self.interval }
    }

    func isDue(_ now: ContinuousClock.Instant) -> Bool { due.map { $0 <= now } ?? false }

    mutating func pause(now: ContinuousClock.Instant) {
        if !statements.isEmpty { due = now + Self.pause }
    }

    /// Takes one out.
    mutating func pop() -> Send? {
        let send = statements.popFirst()?.value
        if statements.isEmpty { due = nil }
        return send
    }
}

extension PostgresClient {
    /// Sends a statement that nobody waits for: within a second or so, together with others, and without waiting for
    /// the disk, so that it may be lost in a crash. It is not sent again when it fails.
    /// - Parameter key: What it is about: of several statements about it, the last one is sent.
    public func executeInBackground<S: Statement>(_ statement: S, about key: RequestKey) {
        loop.preconditionInLoop()
        later.add(key, now: loop.now) { connection, execution in connection.send(statement, for: execution) }
    }

    /// Sends what was gathered, as much as the connections that commit have room for.
    func sendLater(now: ContinuousClock.Instant, limit: Int = LaterStatements.slice) {
        var left = limit
        defer { later.pause(now: now) }
        while left > 0, later.count > 0, let id = pool.acquireShared(.commits) {
            left -= 1
            guard let connection = connection(id), let send = later.pop() else { return }
            let execution = Execution()
            execution.completion = { [unowned self] outcome in laterStatementEnded(outcome) }
            connection.beginRequest(isReadOnly: false)
            connection.send(CommitWithoutWaiting(), for: execution)
            send(connection, execution)
        }
    }

    private func laterStatementEnded(_ outcome: Execution.Outcome) {
        guard case .failed(.server(let error)) = outcome, error.state != later.lastRefusal else { return }
        later.lastRefusal = error.state
        report(.laterStatementRefused(error.state))
    }
}

/// Until the transaction ends, which is the request's own.
private struct CommitWithoutWaiting: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "SELECT set_config('synchronous_commit', 'off', true)"
}
