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
    var nextRequestVerdict: Verdict?
    var unansweredSyncs = 0
    var unansweredCommits = 0
    var group = Group.none

    /// Indexed by the statement's number in the client's catalogue.
    var preparations: [Preparation] = []
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
