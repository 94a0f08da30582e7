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
