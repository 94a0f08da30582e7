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
    enum Expected {
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
    enum Group {
        case none, open, failed, committed
    }

    struct Sent {
        /// The preparation that the execution was sent for; 0 when it could not be sent.
        var serial: Int
        /// Whether that preparation went out in the same batch.
        var isFresh: Bool
        /// Whether it is the first of its request.
        var isFirst: Bool
    }

    enum Preparation {
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

    var expected = Queue<Expected>()
    /// The requests of the batch that is being answered, in order.
    var batch: [(request: Request, verdict: Verdict)] = []
    private var settled = 0
    /// What became of a request whose first preparation failed.
    var nextRequestVerdict: Verdict?
    var unansweredSyncs = 0
    var unansweredCommits = 0
    var group = Group.none

    /// By the number of the statement in the client's catalogue.
    var preparations: [Preparation] = []
    /// By the number of the statement: its last preparation that the server refused.
    var refused: [Int] = []
    private var lastSerial = 0
    /// The first preparation of the batch that is being sent.
    private var firstFreshSerial = 1

    /// How often every preparation was forgotten; part of the names of those that follow, so that none is used twice.
    var epoch = 0
    /// Whether the server may have prepared statements that nobody uses any more: deallocate all before the next
    /// preparation, or close the connection.
    var owesCleanUp = false
    /// Whether a group has failed: the server refuses everything until it is rolled back.
    var owesRollBack = false

    /// Whether the server has nothing to answer.
    var isIdle: Bool { expected.isEmpty }

    /// Whether the next answer is that of a group's COMMIT. A success without that tag is a failure.
    var expectsCommit: Bool { if case .commit = expected.first { true } else { false } }

    /// Whether an error makes the server pass over everything up to the next sync.
    var isAborted = false

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

    // MARK: End

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
