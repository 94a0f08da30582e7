/// Tracks the pending replies of one connection's server, and assigns each to its request.
///
/// A *request* is one or more statements that succeed or fail together. A *batch* is the content between two syncs: one
/// request, or several that only read. The server runs a batch as one transaction. After an error it skips everything
/// up to the next sync. So a request's outcome is final with the reply to its batch's sync.
///
/// A *group* is a batch of several requests that write, between BEGIN and COMMIT. If anything in it fails, nothing
/// takes effect. Every request is then sent again alone, so no result depends on a neighbour. Only a request that met a
/// lock fails immediately, so that it moves to a dedicated connection. Alone it would wait for the lock again.
///
/// A *block* is one request after BEGIN, with its COMMIT behind a sync of its own. It is for servers that do not run a
/// batch as a transaction. After an error the server skips everything up to the first sync, and the COMMIT behind it
/// rolls back. So other requests may follow a block immediately. Its outcome is final at the second sync.
///
/// It also tracks the statements that the server has prepared. Each preparation has a serial number, and each execution
/// stores the number it was sent for. A late error of an earlier preparation does not affect a later one.
///
/// Pure: no libpq, no time.
struct PipelineStateMachine<Request> {
    enum Expected {
        case preparation(statement: Int, serial: Int)
        case statement(Int, Sent, of: Request)
        /// A command of the connection itself, whose reply is ignored.
        case housekeeping
        /// A command of the connection itself that keeps all preparations.
        case setting
        case begin, commit
        case blockBegin, blockSync, blockCommit
        case sync
    }

    /// The state of the group that is being answered.
    enum Group {
        case none, open, failed, committed
    }

    struct Sent {
        /// The preparation that the execution was sent for; 0 if it could not be sent.
        var serial: Int
        /// True if that preparation was sent in the same batch.
        var isFresh: Bool
        /// True for the first statement of its request.
        var isFirst: Bool
    }

    enum Preparation {
        case absent
        /// Sent, not yet answered.
        case preparing(serial: Int)
        case ready(serial: Int)

        var serial: Int {
            switch self {
            case .absent: 0
            case .preparing(let serial), .ready(let serial): serial
            }
        }
    }

    var expected = Queue<Expected>()
    /// The requests of the batch that is being answered, in order.
    var batch: [(request: Request, verdict: Verdict)] = []
    private var settled = 0
    /// The verdict of a request whose first preparation failed.
    private var nextRequestVerdict: Verdict?
    private var unansweredSyncs = 0
    private var unansweredCommits = 0
    var group = Group.none

    /// Indexed by the statement's number in the client's catalogue.
    private var preparations: [Preparation] = []
    /// The last preparation that the server rejected, indexed by the statement's number.
    var refused: [Int] = []
    private var lastSerial = 0
    /// The first preparation of the batch that is being sent.
    private var firstFreshSerial = 1

    /// Counts how often all preparations were discarded. Names of later preparations contain it, so none is used twice.
    var epoch = 0
    /// True if the server may hold unused prepared statements.
    ///
    /// Deallocate all before the next preparation, or close the connection.
    var owesCleanUp = false
    /// True after a group failed. The server rejects everything until the rollback.
    var owesRollBack = false

    /// True if no reply is pending.
    var isIdle: Bool { expected.isEmpty }

    /// True if the next reply is for a group's COMMIT. A success without that tag is a failure.
    var expectsCommit: Bool { if case .commit = expected.first { true } else { false } }

    /// True from an error until the next sync: the server skips everything between.
    var isAborted = false

    // MARK: Sent

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

    /// Records a command that deallocates all earlier preparations.
    mutating func sentCleanUp() {
        owesCleanUp = false
        expected.append(.housekeeping)
    }

    /// Records the start of a block. The request follows.
    mutating func sentBlockBegin() { expected.append(.blockBegin) }

    /// Records a block's sync and its COMMIT. They are sent together with another sync.
    mutating func sentBlockEnd() {
        expected.append(.blockSync)
        expected.append(.blockCommit)
        unansweredSyncs += 1
    }

    /// Records a setting for the current transaction.
    mutating func sentSetting() { expected.append(.setting) }

    /// Records the start of a group. Nothing may follow the group until its end is answered.
    mutating func sentBegin() { expected.append(.begin) }

    /// Records a COMMIT. It is sent together with the sync behind it.
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

    // MARK: End

    /// Returns the next request of the ended batch; `nil` after the last.
    mutating func nextVerdict() -> (request: Request, verdict: Verdict)? {
        if settled < batch.count {
            settled += 1
            return batch[settled - 1]
        }
        batch.removeAll(keepingCapacity: true)
        settled = 0
        return nil
    }

    /// Ends the connection. Returns the verdicts of all requests that had none, in order.
    ///
    /// Statements after the last sync or COMMIT were incomplete, so the server cannot have committed them.
    mutating func end() -> [(request: Request, verdict: Verdict)] {
        var verdicts: [(request: Request, verdict: Verdict)] = []
        var isComplete: Bool { unansweredSyncs + unansweredCommits > 0 }
        for (request, verdict) in batch[settled...] {
            // An answered COMMIT counts, even without a sync behind it.
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

/// The effects of each reply on its request, its batch and the prepared statements.
extension PipelineStateMachine {
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
            // The next attempt also deallocates the statements prepared until then.
            forgetAll()
            return .none
        case .setting, .blockBegin:
            // The server skips the following statements, and they are sent again.
            _ = expected.popFirst()
            return .none
        case .blockCommit:
            _ = expected.popFirst()
            guard let last = batch.last, last.verdict == .succeeded else { return .none }
            decide(.failed)
            return .fail(last.request, statement: nil)
        case .sync:
            // The commit failed. A single request gets the error; several only read and can be repeated.
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
            // Only its effect on preparations counts. The request gets its error when it is sent alone.
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

    /// Returns the action for a failed statement; `.none` when the request only has to be sent again.
    private mutating func judge(_ failure: Failure, of statement: Int, _ sent: Sent, _ request: Request) -> Action {
        switch failure {
        case .unknownStatement where refused[statement] == sent.serial && sent.serial > 0:
            return .failLikePreparation(request, statement: statement)
        case .stalePlan where sent.isFresh:
            // A preparation of the same batch cannot be stale: the server does not support the statement.
            return .fail(request, statement: statement)
        case .unknownStatement, .stalePlan:
            // A confirmed preparation is gone or unusable. The others probably are, too.
            if case .ready(sent.serial) = preparations[statement] { forgetAll() }
            return .none
        case .ordinary, .lock, .duplicateStatement:
            return .fail(request, statement: statement)
        }
    }

    /// Sets the verdict of the current request, or of the next one.
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
}

/// Inputs and outputs of the state machine.
extension PipelineStateMachine {
    /// A reply of the server.
    enum Answer {
        case success
        case failure(Failure)
        case aborted, sync
    }

    /// An error, classified by its effect on prepared statements and groups.
    enum Failure {
        /// No effect.
        case ordinary
        /// No effect on preparations; a lock was not available in time (55P03, 40P01, 40001).
        case lock
        /// The server has no statement of that name (26000).
        case unknownStatement
        /// The schema changed after the preparation, and the result would have other columns (0A000).
        case stalePlan
        /// Another client of the session has prepared a statement of that name (42P05).
        case duplicateStatement
    }

    /// The connection's next step after a reply.
    enum Action {
        /// Nothing to do.
        case none
        case prepared(statement: Int)
        /// The result belongs to this request.
        case keep(Request)
        /// The error belongs to this request. `statement` is its number in the catalogue; nil if the sync itself
        /// failed.
        case fail(Request, statement: Int?)
        /// A preparation failed. The error belongs to this request and to others sent for the same preparation.
        case failPreparation(Request, statement: Int)
        /// The request was sent for a preparation that had failed, and gets the same error.
        case failLikePreparation(Request, statement: Int)
        /// A batch has ended. Call ``nextVerdict()`` until it returns `nil`.
        case settle
        /// The server sent an unexpected reply. The connection is unusable.
        case violation
    }

    /// The outcome of a request.
    enum Verdict {
        /// Every statement succeeded, and the batch is committed.
        case succeeded
        /// A statement of the request failed. An earlier action carried the error.
        case failed
        /// Nothing took effect, because a neighbour failed or the request was incomplete. Send it again, alone.
        case again
        /// The connection ended during the request.
        case lost
    }
}

extension PipelineStateMachine.Failure {
    /// Classifies a code.
    init(_ state: SQLState) {
        switch state {
        case .invalidStatementName: self = .unknownStatement
        case .featureNotSupported: self = .stalePlan
        case .duplicatePreparedStatement: self = .duplicateStatement
        case .lockNotAvailable, .deadlockDetected, .serializationFailure: self = .lock
        default: self = .ordinary
        }
    }
}
