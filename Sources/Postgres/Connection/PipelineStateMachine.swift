/// What one connection's server still has to answer, and to whom each answer belongs.
///
/// A *request* is one or more statements that succeed or fail together. A *batch* is what lies between two syncs: one
/// request, or several that only read. The server runs a batch as one transaction and, after an error, passes over
/// everything up to the next sync. Hence a request's fate is known when its batch's sync is answered.
///
/// Pure: it knows neither libpq nor time.
struct PipelineStateMachine<Request> {
    /// An answer of the server.
    enum Answer {
        case success, failure, aborted, sync
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
        /// The error of a preparation belongs to this request; the statement is not prepared.
        case failPreparation(Request, statement: Int)
        /// A preparation was passed over; the statement is not prepared.
        case forgetPreparation(statement: Int)
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
        case preparation(statement: Int)
        case statement(Int, of: Request, isFirst: Bool)
        case sync
    }

    private var expected = Queue<Expected>()
    /// The requests of the batch that is being answered, in order.
    private var batch: [(request: Request, verdict: Verdict)] = []
    private var settled = 0
    private var failsNextRequest = false
    private var unansweredSyncs = 0

    /// Whether the server has nothing to answer.
    var isIdle: Bool { expected.isEmpty }

    /// Whether an error makes the server pass over everything up to the next sync.
    private(set) var isAborted = false

    // MARK: Sent

    mutating func sentPreparation(statement: Int) {
        expected.append(.preparation(statement: statement))
    }

    mutating func sentStatement(_ statement: Int, of request: Request, isFirst: Bool) {
        expected.append(.statement(statement, of: request, isFirst: isFirst))
    }

    mutating func sentSync() {
        expected.append(.sync)
        unansweredSyncs += 1
    }

    // MARK: Received

    mutating func received(_ answer: Answer) -> Action {
        switch (answer, expected.first) {
        case (.success, .preparation(let statement)):
            _ = expected.popFirst()
            return .prepared(statement: statement)
        case (.success, .statement(_, let request, let isFirst)):
            _ = expected.popFirst()
            if isFirst { batch.append((request, .succeeded)) }
            return .keep(request)
        case (.failure, let head?):
            return receivedFailure(head)
        case (.aborted, .preparation(let statement)):
            _ = expected.popFirst()
            return .forgetPreparation(statement: statement)
        case (.aborted, .statement(_, let request, let isFirst)):
            _ = expected.popFirst()
            receivedAborted(request, isFirst: isFirst)
            return .none
        case (.sync, .sync):
            _ = expected.popFirst()
            unansweredSyncs -= 1
            isAborted = false
            failsNextRequest = false
            return .settle
        default:
            return .violation
        }
    }

    private mutating func receivedFailure(_ head: Expected) -> Action {
        isAborted = true
        switch head {
        case .preparation(let statement):
            _ = expected.popFirst()
            guard case .statement(_, let request, let isFirst) = expected.first else { return .violation }
            if isFirst {
                failsNextRequest = true
            } else if !batch.isEmpty {
                batch[batch.count - 1].verdict = .failed
            }
            return .failPreparation(request, statement: statement)
        case .statement(let statement, let request, let isFirst):
            _ = expected.popFirst()
            if isFirst { batch.append((request, .failed)) }
            if !batch.isEmpty { batch[batch.count - 1].verdict = .failed }
            return .fail(request, statement: statement)
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

    private mutating func receivedAborted(_ request: Request, isFirst: Bool) {
        isAborted = true
        if isFirst {
            batch.append((request, failsNextRequest ? .failed : .again))
            failsNextRequest = false
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
        var failsNext = failsNextRequest
        while let head = expected.popFirst() {
            switch head {
            case .statement(_, let request, isFirst: true):
                verdicts.append((request, failsNext ? .failed : unansweredSyncs > 0 ? .lost : .again))
                failsNext = false
            case .sync: unansweredSyncs -= 1
            case .statement, .preparation: break
            }
        }
        batch = []
        settled = 0
        failsNextRequest = false
        return verdicts
    }
}
