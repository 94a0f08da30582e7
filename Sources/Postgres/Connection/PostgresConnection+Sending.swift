internal import CLibPQ
internal import EventLoop

/// Sends requests' statements, the commands around them, and syncs.
extension PostgresConnection {
    /// Starts a request. Statements sent until the next call belong to it.
    /// - Parameter isTransaction: True if it has several statements that write, and no transaction of its own.
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

    /// Limits waits for locks in the current transaction on all of its nodes. A session's setting applies to its own
    /// node only.
    func setLockTimeout(_ timeout: Duration) {
        guard isDistributed else { return }
        sendSimple("SET LOCAL lock_timeout = \(timeout.setting)")
        pipeline.sentSetting()
    }

    /// Records that only a commit is pending.
    func awaitCommit(_ execution: Execution) {
        execution.isCommit = true
        commitsUnderWay += 1
    }

    /// Ends the transaction of this request.
    ///
    /// The server answers the earlier statements before it executes the COMMIT. This distinguishes a hanging commit
    /// from a wait for a lock.
    func sendCommit(of execution: Execution) {
        guard let connection = handle?.pointer else { return execution.resume(.again) }
        if PQsendFlushRequest(connection) != 1 { isBroken = true }
        execution.expectCommit()
        send(Commit(), for: execution)
    }

    /// Sends one statement of the current request.
    func send<S: Statement>(_ statement: S, for execution: Execution) {
        let number = client.catalog.number(of: S.self)
        client.parameters.removeAll()
        statement.bind(to: &client.parameters)
        sendBound(number, for: execution)
    }

    private func sendBound(_ number: Int, for execution: Execution) {
        // The connection ended before the task resumed, so no reply will come.
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
        // Recorded even when sending failed: the connection ends with this loop iteration, and the request fails then.
        pipeline.sentStatement(number, of: execution, isFirst: sendsFirstStatement)
        sendsFirstStatement = false
        if !isSent { isBroken = true }
    }

    /// Sends the commands that must precede everything else.
    func settleDebts() {
        if pipeline.owesRollBack {
            sync()
            sendSimple("ROLLBACK")
            pipeline.sentRollBack()
            openBatch = .single
            sync()
        }
        // Deallocates statements under unused names. In a transaction on a lease this could fail, so a lease is not
        // reused instead. A session from a pooler is not reused either.
        if pipeline.owesCleanUp, lane != .leases, client.keepsSessions {
            sync()
            sendSimple("DEALLOCATE ALL")
            pipeline.sentCleanUp()
            openBatch = .single
            sync()
        }
    }

    /// Sends a command of the connection itself.
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
        // In an aborted pipeline libpq generates replies itself, without the socket becoming readable.
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
