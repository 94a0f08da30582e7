internal import CLibPQ

/// One request on its way: whom to resume, and the results that have come. Used again by its client.
///
/// Lives on its loop. It owns the results it holds, and frees them.
final class Execution {
    /// What a request's task is told when it may go on.
    enum Outcome: Sendable {
        case succeeded
        case failed(PostgresError)
        /// Nothing took effect, and the same request can be sent again.
        case again
        /// A place on this connection is granted.
        case granted(ConnectionID)
    }

    private var results: [OpaquePointer?] = []
    private var continuation: UnsafeContinuation<Outcome, Never>?
    /// The outcome that came before the task waited for it.
    private var early: Outcome?
    /// For requests of the client's own that no task waits for.
    var completion: ((Outcome) -> Void)?

    /// The error that the server told, until the batch ends.
    var error: PostgresError?
    /// The place in the pool's queue.
    var waiter: PoolStateMachine<Execution>.WaiterID?
    /// What it holds when its task has gone, until the server has answered.
    var key: RequestKey?
    /// The number of the statement that statistics name it by: the first of those that say most of what it is about; -1
    /// before one was sent.
    private(set) var statement = -1
    private var meaning = StatementCatalog.Definition.Meaning.ofClient
    /// Where the caller's own results begin.
    var firstResult = 0
    /// Whether the request ends a transaction that may have written.
    var commits = false
    /// Whether nothing but the commit is waited for.
    var isCommit = false
    /// How many statements were sent for it, and how many of them were answered.
    private var sentCount = 0
    private var answeredCount = 0
    /// How many of its statements come before its COMMIT; nil when it has none of its own.
    private var countBeforeCommit: Int?
    /// Whether its task has gone: what comes for it is thrown away.
    private(set) var isAbandoned = false
    /// Tells one use of this object from the next, for cancellations that come late.
    private(set) var generation: UInt64 = 0

    init(completion: ((Outcome) -> Void)? = nil) { self.completion = completion }

    deinit { clearResults() }

    /// Makes the object ready for its next request.
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

    /// Makes the object ready to be sent once more.
    func prepareToRepeat() {
        clearResults()
        error = nil
        firstResult = 0
        expectNothing()
    }

    /// Tells which statement is sent for it.
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

    /// One more statement is on its way.
    func expectResult() { sentCount += 1 }

    /// The next statement is the COMMIT of what was sent so far.
    func expectCommit() { countBeforeCommit = sentCount }

    /// Whether all that comes before its COMMIT was answered, and it was not.
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

    /// Resumes the task at once if it waits; whatever the server still answers is thrown away.
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

    /// The command tag of the statement at `index`, for example `COMMIT`.
    func hasCommandTag(_ tag: String, at index: Int) -> Bool {
        guard index < results.count, let result = results[index] else { return false }
        return result.hasCommandTag(tag)
    }
}

extension OpaquePointer {
    /// Whether a result of libpq has this command tag.
    func hasCommandTag(_ tag: String) -> Bool { PQcmdStatus(self).map { String(cString: $0) == tag } ?? false }
}

extension Execution {
    /// Reads the rows of the statement at `index`, and moves `index` to the next one.
    func takeNextRows<S: Statement>(of type: S.Type, after index: inout Int) throws(PostgresError) -> [S.Row] {
        defer { index += 1 }
        return try takeRows(of: type, at: index)
    }
}
