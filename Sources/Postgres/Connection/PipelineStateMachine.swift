/// What one connection's server still has to answer, and to whom each answer belongs.
///
/// A *request* is one or more statements that succeed or fail together. A *batch* is what lies between two syncs: one
/// request, or several that only read. The server runs a batch as one transaction and, after an error, passes over
/// everything up to the next sync. Hence a request's fate is known when its batch's sync is answered.
///
/// It also knows which statements the server has prepared. Each preparation has a serial number, and each execution
/// remembers the one it was sent for: a late error about an earlier preparation says nothing about a later one.
///
/// Pure: it knows neither libpq nor time.
struct PipelineStateMachine<Request> {
    /// An answer of the server.
    enum Answer {
        case success
        case failure(Failure)
        case aborted, sync
    }

    /// What an error says about prepared statements.
    enum Failure {
        /// Nothing.
        case ordinary
        /// The server has no statement of that name (26000).
        case unknownStatement
        /// The statement was prepared before the schema changed, and its result would be another (0A000).
        case stalePlan
        /// Somebody else has prepared a statement of that name (42P05).
        case duplicateStatement
    }

    /// What the connection does with an answer.
    enum Action {
        /// Nothing to do.
        case none
        /// A preparation succeeded.
        case prepared(statement: Int)
        /// The result belongs to this request.
        case keep(Request)
        /// The error belongs to this request, and to this statement of the catalogue unless the sync itself failed.
        case fail(Request, statement: Int?)
        /// The error of a preparation belongs to this request, and to those sent for the same preparation.
        case failPreparation(Request, statement: Int)
        /// The request was sent for a preparation that had failed: its error is this request's too.
        case failLikePreparation(Request, statement: Int)
        /// A batch has ended: ask ``nextVerdict()`` until it is `nil`.
        case settle
        /// The server answered what was not asked: the connection is of no use any more.
        case violation
    }

    /// How a request ended.
    enum Verdict {
        /// Every statement succeeded, and the batch is committed.
        case succeeded
        /// A statement of the request failed, and the error was told before.
        case failed
        /// Nothing of it took effect because a neighbour failed, or because it was never complete: send it again.
        case again
        /// The connection ended while it was under way.
        case lost
    }

    private enum Expected {
        case preparation(statement: Int, serial: Int)
        case statement(Int, Sent, of: Request)
        /// A statement of the connection's own, whose answer does not matter.
        case housekeeping
        case sync
    }

    private struct Sent {
        /// The preparation that the execution was sent for; 0 when it could not be sent.
        var serial: Int
        /// Whether that preparation went out in the same batch.
        var isFresh: Bool
        /// Whether it is the first of its request.
        var isFirst: Bool
    }

    private enum Preparation {
        case absent
        /// On its way.
        case preparing(serial: Int)
        case ready(serial: Int)

        var serial: Int {
            switch self {
            case .absent: 0
            case .preparing(let serial), .ready(let serial): serial
            }
        }
    }

    private var expected = Queue<Expected>()
    /// The requests of the batch that is being answered, in order.
    private var batch: [(request: Request, verdict: Verdict)] = []
    private var settled = 0
    /// What became of a request whose first preparation failed.
    private var nextRequestVerdict: Verdict?
    private var unansweredSyncs = 0

    /// By the number of the statement in the client's catalogue.
    private var preparations: [Preparation] = []
    /// By the number of the statement: its last preparation that the server refused.
    private var refused: [Int] = []
    private var lastSerial = 0
    /// The first preparation of the batch that is being sent.
    private var firstFreshSerial = 1

    /// How often every preparation was forgotten; part of the names of those that follow, so that none is used twice.
    private(set) var epoch = 0
    /// Whether the server may have prepared statements that nobody uses any more: deallocate all before the next
    /// preparation, or close the connection.
    private(set) var owesCleanUp = false

    /// Whether the server has nothing to answer.
    var isIdle: Bool { expected.isEmpty }

    /// Whether an error makes the server pass over everything up to the next sync.
    private(set) var isAborted = false

    // MARK: Sent

    /// Whether a preparation has to be sent ahead of the statement.
    mutating func needsPreparation(_ statement: Int) -> Bool {
        while preparations.count <= statement {
            preparations.append(.absent)
            refused.append(0)
        }
        if case .absent = preparations[statement] { return true }
        return false
    }

    mutating func sentPreparation(statement: Int) {
        lastSerial += 1
        preparations[statement] = .preparing(serial: lastSerial)
        expected.append(.preparation(statement: statement, serial: lastSerial))
    }

    mutating func sentStatement(_ statement: Int, of request: Request, isFirst: Bool) {
        let serial = preparations[statement].serial
        let sent = Sent(serial: serial, isFresh: serial >= firstFreshSerial, isFirst: isFirst)
        expected.append(.statement(statement, sent, of: request))
    }

    /// Everything that was prepared before is deallocated by it.
    mutating func sentCleanUp() {
        owesCleanUp = false
        expected.append(.housekeeping)
    }

    mutating func sentSync() {
        expected.append(.sync)
        unansweredSyncs += 1
        firstFreshSerial = lastSerial + 1
    }

    // MARK: Received

    mutating func received(_ answer: Answer) -> Action {
        switch (answer, expected.first) {
        case (.success, .preparation(let statement, let serial)):
            _ = expected.popFirst()
            if preparations[statement].serial == serial { preparations[statement] = .ready(serial: serial) }
            return .prepared(statement: statement)
        case (.success, .statement(_, let sent, let request)):
            _ = expected.popFirst()
            if sent.isFirst { batch.append((request, .succeeded)) }
            return .keep(request)
        case (.failure(let failure), let head?):
            return receivedFailure(failure, head)
        case (.aborted, .preparation(let statement, let serial)):
            _ = expected.popFirst()
            isAborted = true
            forget(statement, serial)
            return .none
        case (.aborted, .statement(_, let sent, let request)):
            _ = expected.popFirst()
            receivedAborted(request, isFirst: sent.isFirst)
            return .none
        case (.success, .housekeeping), (.aborted, .housekeeping):
            _ = expected.popFirst()
            return .none
        case (.sync, .sync):
            _ = expected.popFirst()
            unansweredSyncs -= 1
            isAborted = false
            nextRequestVerdict = nil
            return .settle
        default:
            return .violation
        }
    }

    private mutating func receivedFailure(_ failure: Failure, _ head: Expected) -> Action {
        isAborted = true
        switch head {
        case .preparation(let statement, let serial):
            _ = expected.popFirst()
            guard case .statement(_, let sent, let request) = expected.first else { return .violation }
            forget(statement, serial)
            if case .duplicateStatement = failure {
                forgetAll()
                decide(.again, beforeFirst: sent.isFirst)
                return .none
            }
            refused[statement] = serial
            decide(.failed, beforeFirst: sent.isFirst)
            return .failPreparation(request, statement: statement)
        case .statement(let statement, let sent, let request):
            _ = expected.popFirst()
            if sent.isFirst { batch.append((request, .succeeded)) }
            let action = judge(failure, of: statement, sent, request)
            if case .none = action { decide(.again) } else { decide(.failed) }
            return action
        case .housekeeping:
            _ = expected.popFirst()
            // The next one will take what is prepared now with it.
            forgetAll()
            return .none
        case .sync:
            // The commit failed: for one request that is its own error; several only read and can be repeated.
            if batch.count == 1 {
                let request = batch[0].request
                batch[0].verdict = .failed
                return .fail(request, statement: nil)
            }
            for index in batch.indices { batch[index].verdict = .again }
            return .none
        }
    }

    /// Whose error it is; `.none` when the request has only to be sent again.
    private mutating func judge(_ failure: Failure, of statement: Int, _ sent: Sent, _ request: Request) -> Action {
        switch failure {
        case .unknownStatement where refused[statement] == sent.serial && sent.serial > 0:
            return .failLikePreparation(request, statement: statement)
        case .stalePlan where sent.isFresh:
            // What was prepared in the same batch cannot be stale: the server does not support the statement.
            return .fail(request, statement: statement)
        case .unknownStatement, .stalePlan:
            // What the server had confirmed is gone or of no more use, and with it probably everything else.
            if case .ready(sent.serial) = preparations[statement] { forgetAll() }
            return .none
        case .ordinary, .duplicateStatement:
            return .fail(request, statement: statement)
        }
    }

    /// Sets the verdict of the request that is being answered, or of the one that begins next.
    private mutating func decide(_ verdict: Verdict, beforeFirst: Bool = false) {
        if beforeFirst {
            nextRequestVerdict = verdict
        } else if !batch.isEmpty {
            batch[batch.count - 1].verdict = verdict
        }
    }

    private mutating func forget(_ statement: Int, _ serial: Int) {
        if preparations[statement].serial == serial { preparations[statement] = .absent }
    }

    private mutating func forgetAll() {
        for index in preparations.indices { preparations[index] = .absent }
        epoch += 1
        owesCleanUp = true
    }

    private mutating func receivedAborted(_ request: Request, isFirst: Bool) {
        isAborted = true
        if isFirst {
            batch.append((request, nextRequestVerdict ?? .again))
            nextRequestVerdict = nil
        } else if let last = batch.last, last.verdict == .succeeded {
            batch[batch.count - 1].verdict = .again
        }
    }

    /// The next request of the batch that has ended; `nil` after the last.
    mutating func nextVerdict() -> (request: Request, verdict: Verdict)? {
        if settled < batch.count {
            settled += 1
            return batch[settled - 1]
        }
        batch.removeAll(keepingCapacity: true)
        settled = 0
        return nil
    }

    // MARK: End

    /// The connection has ended: the verdict for every request that had none, in order.
    ///
    /// What follows the last sync was never complete, so the server cannot have committed it.
    mutating func end() -> [(request: Request, verdict: Verdict)] {
        var verdicts: [(request: Request, verdict: Verdict)] = []
        let isComplete = unansweredSyncs > 0
        for (request, verdict) in batch[settled...] {
            verdicts.append((request, verdict == .failed ? .failed : isComplete ? .lost : .again))
        }
        var next = nextRequestVerdict
        while let head = expected.popFirst() {
            switch head {
            case .statement(_, let sent, let request) where sent.isFirst:
                verdicts.append((request, next ?? (unansweredSyncs > 0 ? .lost : .again)))
                next = nil
            case .sync: unansweredSyncs -= 1
            case .statement, .preparation, .housekeeping: break
            }
        }
        batch = []
        settled = 0
        nextRequestVerdict = nil
        return verdicts
    }
}
