internal import EventLoop

/// Statements without a waiting caller, gathered to be sent together.
struct LaterStatements {
    typealias Send = (PostgresConnection, Execution) -> Void

    /// The time for which they are gathered, and their maximum number.
    static let interval = Duration.seconds(1)
    static let limit = 8_192
    /// The number that is sent at once, and the pause between two such slices. They keep other requests from being
    /// delayed.
    static let slice = 64
    static let pause = Duration.milliseconds(20)

    private var statements: [RequestKey: Send] = [:]
    /// The time at which the next slice is sent.
    private(set) var due: ContinuousClock.Instant?
    /// The code with which the last rejected one failed.
    var lastRefusal: SQLState?

    var count: Int { statements.count }

    /// Stores `send` in place of an earlier one of the same key, or discards it when the limit is reached.
    mutating func add(_ key: RequestKey, now: ContinuousClock.Instant, _ send: @escaping Send) {
        guard statements.count < Self.limit || statements[key] != nil else { return }
        statements[key] = send
        if due == nil { due = now + Self.interval }
    }

    func isDue(_ now: ContinuousClock.Instant) -> Bool { due.map { $0 <= now } ?? false }

    mutating func pause(now: ContinuousClock.Instant) {
        if !statements.isEmpty { due = now + Self.pause }
    }

    /// Removes and returns one.
    mutating func pop() -> Send? {
        let send = statements.popFirst()?.value
        if statements.isEmpty { due = nil }
        return send
    }
}

extension PostgresClient {
    /// Sends a statement in the background, within about a second and together with others.
    ///
    /// It does not wait for the disk, so a crash can lose it. It is not sent again when it fails.
    /// - Parameter key: Identifies its subject. Of several statements with the same key, the last one is sent.
    public func executeInBackground<S: Statement>(_ statement: S, about key: RequestKey) {
        loop.preconditionInLoop()
        later.add(key, now: loop.now) { connection, execution in connection.send(statement, for: execution) }
    }

    /// Sends gathered statements, as many as the write connections have room for.
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

/// Applies until the end of the transaction, which is the request's own.
private struct CommitWithoutWaiting: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "SELECT set_config('synchronous_commit', 'off', true)"
}
