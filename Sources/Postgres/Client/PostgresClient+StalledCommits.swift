internal import EventLoop

extension PostgresClient {
    /// Tests by a commit without trace whether commits end again. The connection has a place reserved for it.
    func testCommit(on id: ConnectionID) {
        guard let connection = connection(id) else { return }
        let execution = Execution()
        execution.commits = true
        execution.completion = { [unowned self] outcome in
            var hasCommitted = false
            if case .succeeded = outcome { hasCommitted = true }
            changingCommits { pool.commitTested(id, hasCommitted: hasCommitted) }
        }
        connection.beginRequest(isReadOnly: false)
        connection.send(WriteNothing(), for: execution)
    }
}

/// Writes a message without readers into the log, so that its commit has something to wait for.
private struct WriteNothing: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "SELECT pg_logical_emit_message(true, 'saltern', '')"
}

/// Returns the given server processes that still exist. It ends idle ones, which have no client. Active ones continue,
/// since one may be committing.
struct FindBackends: Statement {
    typealias Row = Int32

    /// It commits nothing, and has to run while writes are rejected because of such processes.
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.pid, CASE WHEN a.state LIKE 'idle%' THEN pg_terminate_backend(a.pid) END
        FROM pg_stat_activity a JOIN unnest(\(\.pids), \(\.starts)) AS known (pid, backend_start)
            USING (pid, backend_start)
        """
    let backends: [Backend]

    private var known: [Backend] { backends.filter { $0.startedAt != nil } }
    private var pids: [Int32] { known.map(\.pid) }
    private var starts: [Timestamp] { known.compactMap(\.startedAt) }
}
