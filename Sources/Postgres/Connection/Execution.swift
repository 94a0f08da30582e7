internal import CLibPQ

/// One request in progress: the task to resume, and the results received. Its client reuses it.
///
/// Lives on its loop. It owns its results and frees them.
final class Execution {
    /// The result with which a request's task resumes.
    enum Outcome: Sendable {
        case succeeded
        case failed(PostgresError)
        /// Nothing took effect, and the same request can be sent again.
        case again
        /// The pool grants a place on this connection.
        case granted(ConnectionID)
    }

    private var results: [OpaquePointer?] = []
    private var continuation: UnsafeContinuation<Outcome, Never>?
    /// The outcome, if it came before the task waited.
    private var early: Outcome?
    /// Receives the outcome of the client's own requests, which have no task.
    var completion: ((Outcome) -> Void)?

    /// The server's error, until the batch ends.
    var error: PostgresError?
    /// The position in the pool's queue.
    var waiter: PoolStateMachine<Execution>.WaiterID?
    /// The key that the request holds after its task has gone, until the server replies.
    var key: RequestKey?
    /// The number of the statement that names it in statistics: the first with the highest `meaning`. -1 until one is
    /// sent.
    private(set) var statement = -1
    private var meaning = StatementCatalog.Definition.Meaning.ofClient
    /// The index of the caller's first result.
    var firstResult = 0
    /// True if the request ends a transaction that may have written.
    var commits = false
    /// True while only the commit is pending.
    var isCommit = false
    /// The number of statements sent for it, and of those answered.
    private var sentCount = 0
    private var answeredCount = 0
    /// The number of its statements before its COMMIT; nil without a COMMIT of its own.
    private var countBeforeCommit: Int?
    /// True after its task has gone. Later results are discarded.
    private(set) var isAbandoned = false
    /// Distinguishes uses of this object, for late cancellations.
    private(set) var generation: UInt64 = 0

    init(completion: ((Outcome) -> Void)? = nil) { self.completion = completion }

    deinit { clearResults() }

    /// Prepares the object for its next request.
    func reset() {
        clearResults()
        continuation = nil
        early = nil
        error = nil
        waiter = nil
        key = nil
        statement = -1
        meaning = .ofClient
        firstResult = 0
        commits = false
        expectNothing()
        generation &+= 1
    }

    /// Prepares the object to be sent again.
    func prepareToRepeat() {
        clearResults()
        error = nil
        firstResult = 0
        expectNothing()
    }

    /// Records a statement that is sent for it.
    func sends(_ number: Int, _ meaning: StatementCatalog.Definition.Meaning) {
        guard statement < 0 || meaning.rawValue > self.meaning.rawValue else { return }
        statement = number
        self.meaning = meaning
    }

    private func expectNothing() {
        isCommit = false
        sentCount = 0
        answeredCount = 0
        countBeforeCommit = nil
    }

    func expectResult() { sentCount += 1 }

    /// Marks the next statement as the COMMIT of the statements sent so far.
    func expectCommit() { countBeforeCommit = sentCount }

    /// True once all statements before its COMMIT are answered, and the COMMIT is not.
    var awaitsCommit: Bool { answeredCount == countBeforeCommit }

    func wait(with continuation: UnsafeContinuation<Outcome, Never>) {
        if let early {
            self.early = nil
            continuation.resume(returning: early)
        } else {
            self.continuation = continuation
        }
    }

    func resume(_ outcome: Outcome) {
        if isAbandoned { return }
        if let completion {
            self.completion = nil
            completion(outcome)
        } else if let continuation {
            self.continuation = nil
            continuation.resume(returning: outcome)
        } else {
            early = outcome
        }
    }

    /// Resumes a waiting task immediately. Later replies of the server are discarded.
    func abandon() {
        guard continuation != nil else { return }
        resume(.failed(.cancelled))
        isAbandoned = true
        clearResults()
    }

    /// Takes ownership of `result`.
    func keep(_ result: OpaquePointer) {
        answeredCount += 1
        if isAbandoned {
            PQclear(result)
        } else {
            results.append(result)
        }
    }

    func clearResults() {
        for result in results { PQclear(result) }
        results.removeAll(keepingCapacity: true)
    }

    /// Reads the rows of the caller's statement at `index`, and frees its result.
    func takeRows<S: Statement>(of type: S.Type, at index: Int) throws(PostgresError) -> [S.Row] {
        let index = firstResult + index
        guard index < results.count, let result = results[index] else { throw .connectionLost }
        results[index] = nil
        defer { PQclear(result) }
        if S.Row.self == ChangedRows.self, let row = ChangedRows(result: result) as? S.Row { return [row] }
        let count = PQntuples(result)
        if count == 0 { return [] }
        let columnCount = PQnfields(result)
        var rows: [S.Row] = []
        rows.reserveCapacity(Int(count))
        for row in 0..<count {
            var reader = RowReader(result: result, row: row, columnCount: columnCount)
            do throws(PostgresError) {
                rows.append(try S.decode(&reader))
            } catch {
                throw error.naming(StatementCatalog.name(of: type))
            }
        }
        return rows
    }

    /// Returns true if the statement at `index` has this command tag, for example `COMMIT`.
    func hasCommandTag(_ tag: String, at index: Int) -> Bool {
        guard index < results.count, let result = results[index] else { return false }
        return result.hasCommandTag(tag)
    }
}

extension OpaquePointer {
    /// Returns true if a result of libpq has this command tag.
    func hasCommandTag(_ tag: String) -> Bool { PQcmdStatus(self).map { String(cString: $0) == tag } ?? false }
}

extension Execution {
    /// Reads the rows of the statement at `index`, and increments `index`.
    func takeNextRows<S: Statement>(of type: S.Type, after index: inout Int) throws(PostgresError) -> [S.Row] {
        defer { index += 1 }
        return try takeRows(of: type, at: index)
    }
}
