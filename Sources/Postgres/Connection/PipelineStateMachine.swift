/// What one connection's server still has to answer, and to whom each answer belongs.
///
/// A *request* is one or more statements that succeed or fail together. A *batch* is what lies between two syncs: one
/// request, or several that only read. The server runs a batch as one transaction and, after an error, passes over
/// everything up to the next sync. Hence a request's fate is known when its batch's sync is answered.
///
/// A *group* is a batch of several requests that write, with BEGIN and COMMIT around them. When anything in it fails,
/// nothing of it took effect: every request is to be sent again alone, so that no answer depends on a neighbour. Only who
/// has met a lock is told so: that is nobody's answer, and alone he would wait for it.
///
/// A *block* is one request with BEGIN before it and COMMIT behind a sync of its own: for a server to which a batch is no
/// transaction. After an error the server passes over everything up to the first sync, and the COMMIT behind it rolls back;
/// so others may be sent behind a block at once, whatever becomes of it. Its fate is known at the second sync.
///
/// It also knows which statements the server has prepared. Each preparation has a serial number, and each execution
/// remembers the one it was sent for: a late error about an earlier preparation says nothing about a later one.
///
/// Pure: it knows neither libpq nor time.
struct PipelineStateMachine<Request> {
    private enum Expected {
        case preparation(statement: Int, serial: Int)
        case statement(Int, Sent, of: Request)
        /// A statement of the connection's own, whose answer does not matter.
        case housekeeping
        /// One that leaves everything that is prepared as it is.
        case setting
        case begin, commit
        case blockBegin, blockSync, blockCommit
        case sync
    }

    /// What has come of the group that is being answered.
    private enum Group {
        case none, open, failed, committed
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
    private var unansweredCommits = 0
    private var group = Group.none

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
    /// Whether a group has failed: the server refuses everything until it is rolled back.
    private(set) var owesRollBack = false

    /// Whether the server has nothing to answer.
    var isIdle: Bool { expected.isEmpty }

    /// Whether the next answer is that of a group's COMMIT. A success without that tag is a failure.
    var expectsCommit: Bool { if case .commit = expected.first { true } else { false } }

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

    /// A block begins: the request follows.
    mutating func sentBlockBegin() { expected.append(.blockBegin) }

    /// The sync and the COMMIT behind it, to be sent together with another sync.
    mutating func sentBlockEnd() {
        expected.append(.blockSync)
        expected.append(.blockCommit)
        unansweredSyncs += 1
    }

    /// A setting for the transaction that was begun.
    mutating func sentSetting() { expected.append(.setting) }

    /// A group begins: nothing is to be sent behind it until its end is answered.
    mutating func sentBegin() { expected.append(.begin) }

    /// To be sent together with the sync behind it.
    mutating func sentCommit() {
        expected.append(.commit)
        unansweredCommits += 1
    }

    mutating func sentRollBack() {
        owesRollBack = false
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
        case (.success, .begin):
            _ = expected.popFirst()
            group = .open
            return .none
        case (.success, .commit), (.aborted, .commit):
            _ = expected.popFirst()
            unansweredCommits -= 1
            if case .success = answer { group = .committed }
            return .none
        case (.failure(let failure), .begin?), (.failure(let failure), .commit?):
            return receivedGroupFailure(failure, expected.first ?? .sync)
        case (.failure(let failure), let head?):
            return group == .none ? receivedFailure(failure, head) : receivedGroupFailure(failure, head)
        case (.aborted, .preparation(let statement, let serial)):
            _ = expected.popFirst()
            isAborted = true
            forget(statement, serial)
            return .none
        case (.aborted, .statement(_, let sent, let request)):
            _ = expected.popFirst()
            receivedAborted(request, isFirst: sent.isFirst)
            return .none
        case (.success, .housekeeping), (.aborted, .housekeeping), (.success, .setting), (.aborted, .setting),
            (.success, .blockBegin), (.success, .blockCommit), (.aborted, .blockCommit):
            _ = expected.popFirst()
            return .none
        case (.sync, .blockSync):
            _ = expected.popFirst()
            unansweredSyncs -= 1
            isAborted = false
            nextRequestVerdict = nil
            return .none
        case (.sync, .sync):
            _ = expected.popFirst()
            unansweredSyncs -= 1
            isAborted = false
            nextRequestVerdict = nil
            settleGroup()
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
        case .setting, .blockBegin:
            // What follows is passed over, and sent again.
            _ = expected.popFirst()
            return .none
        case .blockCommit:
            _ = expected.popFirst()
            guard let last = batch.last, last.verdict == .succeeded else { return .none }
            decide(.failed)
            return .fail(last.request, statement: nil)
        case .sync:
            // The commit failed: for one request that is its own error; several only read and can be repeated.
            if batch.count == 1 {
                let request = batch[0].request
                batch[0].verdict = .failed
                return .fail(request, statement: nil)
            }
            for index in batch.indices { batch[index].verdict = .again }
            return .none
        case .begin, .commit, .blockSync: return .violation
        }
    }

    private mutating func receivedGroupFailure(_ failure: Failure, _ head: Expected) -> Action {
        isAborted = true
        group = .failed
        _ = expected.popFirst()
        switch head {
        case .begin: return .none
        case .commit:
            unansweredCommits -= 1
            return .none
        case .preparation(let statement, let serial):
            forget(statement, serial)
            if case .duplicateStatement = failure { forgetAll() } else { refused[statement] = serial }
            return .none
        case .statement(let statement, let sent, let request):
            if sent.isFirst { batch.append((request, .succeeded)) }
            if case .lock = failure {
                decide(.failed)
                return .fail(request, statement: statement)
            }
            // What it says about preparations counts; the request hears its error when it is alone.
            _ = judge(failure, of: statement, sent, request)
            return .none
        case .sync, .housekeeping, .setting, .blockBegin, .blockSync, .blockCommit: return .violation
        }
    }

    private mutating func settleGroup() {
        if group == .open || group == .failed {
            owesRollBack = true
            for index in batch.indices where batch[index].verdict != .failed { batch[index].verdict = .again }
        }
        group = .none
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
        case .ordinary, .lock, .duplicateStatement:
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
    /// What follows the last sync or COMMIT was never complete, so the server cannot have committed it.
    mutating func end() -> [(request: Request, verdict: Verdict)] {
        var verdicts: [(request: Request, verdict: Verdict)] = []
        var isComplete: Bool { unansweredSyncs + unansweredCommits > 0 }
        for (request, verdict) in batch[settled...] {
            // A COMMIT that was answered counts, also when nothing was sent behind it.
            let unknown: Verdict = isComplete || group == .committed ? .lost : .again
            verdicts.append((request, verdict == .failed ? .failed : unknown))
        }
        var next = nextRequestVerdict
        while let head = expected.popFirst() {
            switch head {
            case .statement(_, let sent, let request) where sent.isFirst:
                verdicts.append((request, next ?? (isComplete ? .lost : .again)))
                next = nil
            case .sync, .blockSync: unansweredSyncs -= 1
            case .commit: unansweredCommits -= 1
            case .statement, .preparation, .housekeeping, .setting, .begin, .blockBegin, .blockCommit: break
            }
        }
        batch = []
        settled = 0
        group = .none
        nextRequestVerdict = nil
        return verdicts
    }
}
