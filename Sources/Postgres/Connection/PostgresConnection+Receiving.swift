internal import CLibPQ
internal import EventLoop

/// Receives results and resumes requests.
extension PostgresConnection {
    func read() {
        guard let connection = handle?.pointer else { return }
        lastReceived = loop.now
        repeat {
            if isStalled {
                isStalled = false
                client.connectionReceived(self)
            }
            let isAlive = PQconsumeInput(connection) == 1
            // Results from before the end still count, above all the server's last error.
            receive()
            if !isAlive { return end(.lost) }
        } while handle != nil && saltern_has_pending_tls_input(connection) != 0
    }

    func receive() {
        // A nil result separates the results of two statements. Several in a row mean that there are no more.
        var separators = 0
        while let connection = handle?.pointer, PQisBusy(connection) == 0, !pipeline.isIdle, separators < 4 {
            if let result = PQgetResult(connection) {
                separators = 0
                receive(result)
            } else {
                separators += 1
            }
        }
    }

    /// Takes ownership of `result`.
    private func receive(_ result: OpaquePointer) {
        var keepsResult = false
        defer { if !keepsResult { PQclear(result) } }
        var error: ServerError?
        let answer: PipelineStateMachine<Execution>.Answer
        switch PQresultStatus(result) {
        case PGRES_COMMAND_OK where pipeline.expectsCommit && !result.hasCommandTag("COMMIT"):
            answer = .failure(.ordinary)
        case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY: answer = .success
        case PGRES_PIPELINE_SYNC: answer = .sync
        case PGRES_PIPELINE_ABORTED: answer = .aborted
        case PGRES_FATAL_ERROR:
            // Without a code it is libpq's own report of a lost connection.
            guard let report = ServerError(result: result) else { return end(.lost) }
            error = report
            answer = .failure(.init(report.state))
        default: return end(.lost)
        }
        switch pipeline.received(answer) {
        case .none: break
        case .prepared(let statement):
            if !preparationErrors.isEmpty { preparationErrors[statement] = nil }
        case .keep(let execution):
            keepsResult = true
            execution.keep(result)
            if execution.awaitsCommit { awaitCommit(execution) }
        case .fail(let execution, let statement):
            execution.error = named(error, statement)
        case .failPreparation(let execution, let statement):
            execution.error = named(error, statement)
            preparationErrors[statement] = execution.error
        case .failLikePreparation(let execution, let statement):
            execution.error = preparationErrors[statement] ?? named(error, statement)
        case .settle: settle()
        case .violation: return end(.lost)
        }
        // A cluster node reports the same codes for its connections to other nodes, which end nothing here.
        if let error, error.state.endsSession, !isDistributed || error.state.errorClass != "08" {
            isRetiring = true
            client.connectionIsRetiring(self)
        }
    }

    private func named(_ error: ServerError?, _ statement: Int?) -> PostgresError {
        guard var error else { return .connectionLost }
        if let statement { error.statement = client.catalog.definitions[statement].name }
        return .server(error)
    }

    private func settle() {
        isInDoubt = handle?.takeWarnings().leaveDoubt(isDistributed: isDistributed) ?? false
        defer { isInDoubt = false }
        while let (execution, verdict) = pipeline.nextVerdict() {
            client.requestEnded(on: self)
            settle(execution, verdict)
        }
        if pipeline.owesCleanUp && !client.keepsSessions && !isRetiring {
            isRetiring = true
            client.connectionIsRetiring(self)
        }
        // The next request may be far away.
        if pipeline.owesRollBack && isOpen {
            settleDebts()
            loop.notifyAtIterationEnd(self)
        }
    }

    func settle(_ execution: Execution, _ verdict: PipelineStateMachine<Execution>.Verdict) {
        if execution.isCommit { commitsUnderWay -= 1 }
        if execution.isAbandoned { return client.abandonedRequestEnded(execution) }
        switch verdict {
        // The change is committed, but the server that continues may lack it: no standby confirmed, or another server
        // is used now.
        case .succeeded where execution.commits && (isInDoubt || isOutdated): execution.resume(.failed(.commitInDoubt))
        case .succeeded: execution.resume(.succeeded)
        case .failed: execution.resume(.failed(execution.error ?? .connectionLost))
        case .again: execution.resume(.again)
        case .lost: execution.resume(.failed(endReason == .silent ? .timedOut : .connectionLost))
        }
    }
}
