internal import CLibPQ
internal import EventLoop

/// What is sent: statements of requests, what belongs before and behind them, and syncs.
extension PostgresConnection {
    /// Starts a request: the statements that are sent until the next call belong together.
    /// - Parameter isTransaction: Whether it has several statements that write, and no transaction of its own.
    func beginRequest(isReadOnly: Bool, isTransaction: Bool = false) {
        if pipeline.isIdle { lastReceived = loop.now }
        if expectedMembers > 0 {
            beginMember()
        } else {
            if openBatch == .single || openBatch == .block || openBatch == .readOnly && !isReadOnly { sync() }
            settleDebts()
            openBatch = isReadOnly ? .readOnly : .single
            if isDistributed && isTransaction { beginBlock() }
        }
        sendsFirstStatement = true
        loop.notifyAtIterationEnd(self)
    }

    /// Bounds waits for locks in the transaction that was begun on every node that takes part in it: a session's setting
    /// stays on the node that it is connected to.
    func setLockTimeout(_ timeout: Duration) {
        guard isDistributed else { return }
        sendSimple("SET LOCAL lock_timeout = \(timeout.setting)")
        pipeline.sentSetting()
    }

    /// Nothing but a commit is waited for from now on.
    func awaitCommit(_ execution: Execution) {
        execution.isCommit = true
        commitsUnderWay += 1
    }

    /// Ends the transaction that was begun for this request. What comes before the COMMIT is answered before it is carried
    /// out, so that a commit that does not end can be told from a wait for a lock.
    func sendCommit(of execution: Execution) {
        guard let connection = handle?.pointer else { return execution.resume(.again) }
        if PQsendFlushRequest(connection) != 1 { isBroken = true }
        execution.expectCommit()
        send(Commit(), for: execution)
    }

    /// Sends one statement of the request that was begun.
    func send<S: Statement>(_ statement: S, for execution: Execution) {
        let number = client.catalog.number(of: S.self)
        client.parameters.removeAll()
        statement.bind(to: &client.parameters)
        sendBound(number, for: execution)
    }

    private func sendBound(_ number: Int, for execution: Execution) {
        // Nobody else would ever tell: the connection ended before the task that had it went on.
        guard let connection = handle?.pointer else { return execution.resume(.again) }
        let definition = client.catalog.definitions[number]
        let name = definition.preparedName(epoch: pipeline.epoch)
        execution.sends(number, definition.meaning)
        let isUnknown = pipeline.needsPreparation(number)
        if client.parameters.byteCount > Self.lastingByteLimit { isOutgrown = true }
        let isSent = client.parameters.withArrays { count, types, values, lengths, formats in
            if isUnknown {
                guard PQsendPrepare(connection, name, definition.sql, count, types) == 1 else { return false }
                pipeline.sentPreparation(statement: number)
            }
            return PQsendQueryPrepared(connection, name, count, values, lengths, formats, 1) == 1
        }
        execution.expectResult()
        // Told even when it was not sent: the connection ends with this turn, and the request learns of it then.
        pipeline.sentStatement(number, of: execution, isFirst: sendsFirstStatement)
        sendsFirstStatement = false
        if !isSent { isBroken = true }
    }

    /// Sends what has to come before anything else.
    func settleDebts() {
        if pipeline.owesRollBack {
            sync()
            sendSimple("ROLLBACK")
            pipeline.sentRollBack()
            openBatch = .single
            sync()
        }
        // What the server may still have prepared under names that are not used any more. In somebody's transaction it
        // might fail; a lease is not used again instead, and neither is what has no session of its own.
        if pipeline.owesCleanUp, lane != .leases, client.keepsSessions {
            sync()
            sendSimple("DEALLOCATE ALL")
            pipeline.sentCleanUp()
            openBatch = .single
            sync()
        }
    }

    /// Sends a command of the connection's own.
    func sendSimple(_ command: String) {
        guard let connection = handle?.pointer else { return }
        if PQsendQueryParams(connection, command, 0, nil, nil, nil, nil, 1) != 1 { isBroken = true }
    }

    func sync() {
        guard let connection = handle?.pointer, openBatch != .none, !isBroken else { return }
        if openBatch == .block {
            if saltern_queue_pipeline_sync(connection) != 1 { isBroken = true }
            sendSimple("COMMIT")
            pipeline.sentBlockEnd()
        }
        openBatch = .none
        if !isBroken, saltern_queue_pipeline_sync(connection) == 1 {
            pipeline.sentSync()
        } else {
            isBroken = true
        }
    }

    func iterationEnded() {
        guard endGroup() else { return }
        sync()
        if isBroken { return end(.lost) }
        flush()
        // In an aborted pipeline libpq answers by itself, without the socket becoming readable.
        if pipeline.isAborted { receive() }
    }

    func flush() {
        guard let connection = handle?.pointer else { return }
        switch PQflush(connection) {
        case 0: watch?.setWriting(false)
        case 1: watch?.setWriting(true)
        default: end(.lost)
        }
    }
}
