internal import CLibPQ
internal import EventLoop

/// One connection in pipeline mode. It opens, sends statements, and passes each reply to its request.
///
/// Lives on its loop. Data sent during a loop iteration is written at its end.
final class PostgresConnection: IterationObserver {
    enum Phase {
        case opening, settingUp, open, closed
    }

    let id: ConnectionID
    let lane: PoolLane
    /// The index of the server that was tried first.
    let serverIndex: Int
    // The client closes its connections before it is released.
    unowned let client: PostgresClient
    let loop: EventLoop
    var opening: ConnectionOpening?
    private(set) var handle: ConnectionHandle?
    private(set) var watch: DescriptorWatch?
    var phase = Phase.opening
    var pipeline = PipelineStateMachine<Execution>()
    /// The error of a statement's last preparation, also for executions that were sent before it arrived.
    private var preparationErrors: [Int: PostgresError] = [:]
    /// The server's end, once it is received.
    private(set) var serverEnd: ServerEnd?
    /// The epoch in which it was found usable; until then, later than all others.
    var epoch = Int.max
    /// True if the server is a cluster node, which does not run a batch as a transaction.
    var isDistributed: Bool { serverEnd?.isDistributed ?? false }
    /// The reason of a failure that the connection itself does not report.
    var failure: ConnectionFailure?
    /// The number of pending requests that end a transaction on a lease.
    private var commitsUnderWay = 0
    private var silence: ConnectionSilence

    private var batch = OutgoingBatch()
    var isIterationEndRequested = false

    init(
        id: ConnectionID, lane: PoolLane, serverIndex: Int, probeTarget: ProbeTarget? = nil,
        client: PostgresClient
    ) {
        self.id = id
        self.lane = lane
        self.serverIndex = serverIndex
        self.client = client
        loop = client.loop
        let configuration = client.configuration
        silence = ConnectionSilence(
            limits: ConnectionSilence.Limits(
                takeover: configuration.takeoverPatience, commit: configuration.commitPatience,
                reply: configuration.silenceTimeout),
            connectTimeout: configuration.connectTimeout, probeTarget: probeTarget, now: loop.now)
    }

    /// True if requests can be sent.
    var isOpen: Bool { phase == .open && !isBroken }

    private var isBroken: Bool { handle?.isBroken ?? false }

    /// True if the server has reported that its session takes no further requests.
    private var isRetiring = false

    /// True if the session is unchanged since its set-up.
    var isReusable: Bool { isOpen && !isRetiring && handle?.isOutgrown == false && !pipeline.owesCleanUp }

    /// True if no request is in progress.
    var isIdle: Bool { pipeline.isIdle }

    // MARK: Opening

    /// Starts to connect.
    func open() {
        let opening = ConnectionOpening(loop: loop) { [unowned self] in
            silence.restart(loop.now)
        } completion: { [unowned self] handle in
            guard let handle else { return end(.lost) }
            self.handle = handle
            setUp(handle)
        }
        self.opening = opening
        let hosts = HostList(client.configuration.connectionOptions(for: lane))
        opening.start(hosts, serverIndex: serverIndex, isAlone: lane == .probe, resolver: client.resolver)
    }

    private func setUp(_ handle: ConnectionHandle) {
        guard handle.beginPipeline() else { return end(.lost) }
        phase = .settingUp
        silence.restart(loop.now)
        guard watchSocket(of: handle.pointer) else { return end(.lost) }
        let execution = Execution()
        execution.completion = { [unowned self, unowned execution] outcome in
            if case .failed(.server(let error)) = outcome { failure = .server(error.state) }
            guard case .succeeded = outcome else { return end(.lost) }
            serverEnd = (try? execution.takeRows(of: FindServer.self, at: 0))?.first
            phase = .open
            client.connectionOpened(self)
        }
        beginRequest(isReadOnly: false)
        switch client.configuration.pooling {
        case .session: send(SetUpSession(configuration: client.configuration), for: execution)
        case .transaction: send(FindServer(), for: execution)
        }
    }

    private func watchSocket(of connection: OpaquePointer) -> Bool {
        let descriptor = PQsocket(connection)
        guard descriptor >= 0 else { return false }
        let watch = DescriptorWatch(loop: loop, descriptor: descriptor) { [unowned self] readiness in
            switch readiness {
            case .readable: read()
            case .writable: flush()
            }
        }
        watch.setReading(true)
        self.watch = watch
        return true
    }

    // MARK: End

    /// The reason why a connection ended.
    enum EndReason {
        case lost, silent, closed
    }
    private(set) var endReason = EndReason.lost
    /// True if the server sent a warning during a commit.
    private var isInDoubt = false

    /// Closes the connection and notifies all waiting requests.
    func end(_ reason: EndReason) {
        guard phase != .closed else { return }
        let wasOpening = phase == .opening || phase == .settingUp
        if wasOpening && reason == .lost, failure == nil {
            failure = handle?.failure ?? opening?.failure
        }
        phase = .closed
        endReason = reason
        opening?.cancel()
        watch?.cancel()
        watch = nil
        handle = nil
        for (execution, verdict) in pipeline.end() { settle(execution, verdict) }
        if wasOpening && reason == .lost && lane != .probe { client.connectionFailed(failure ?? .other) }
        client.connectionEnded(self, isGivenUp: reason == .silent)
    }
}

/// Receives results and resumes requests.
extension PostgresConnection {
    func read() {
        guard let connection = handle?.pointer else { return }
        silence.restart(loop.now)
        repeat {
            if silence.endStall() { client.connectionReceived(self) }
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
        if let error, error.state.endsSession, !error.isOfOtherNode, !isDistributed || error.state.errorClass != "08" {
            isRetiring = true
            client.connectionIsRetiring(self)
        }
    }

    private func named(_ error: ServerError?, _ statement: Int?) -> PostgresError {
        guard var error, !error.isCommitUnknown else { return .connectionLost }
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

/// Sends requests' statements, the commands around them, and syncs.
///
/// A group of several requests begins with the first one sent. It ends with the loop iteration in which the last one
/// was sent. On a cluster, a block encloses each request that writes more than once.
extension PostgresConnection {
    /// Makes the next `count` requests members of a group. The pool admits no others until its end is answered.
    func expectGroup(_ count: Int) { batch.expectGroup(count) }

    /// Starts a request. Statements sent until the next call belong to it.
    /// - Parameter isTransaction: True if it has several statements that write, and no transaction of its own.
    func beginRequest(isReadOnly: Bool, isTransaction: Bool = false) {
        if pipeline.isIdle { silence.restart(loop.now) }
        let kind = batch.kindOfNext(isReadOnly: isReadOnly, isBlock: isDistributed && isTransaction)
        if kind != .group || batch.kind != .group { begin(kind) }
        batch.add(kind)
        loop.notifyAtIterationEnd(self)
    }

    /// Sends the commands that precede a request, or the first member of a group.
    private func begin(_ kind: OutgoingBatch.Kind) {
        if !batch.admits(kind) { sync() }
        settleDebts()
        switch kind {
        case .none, .readOnly, .single: break
        case .group:
            handle?.send("BEGIN ISOLATION LEVEL READ COMMITTED")
            pipeline.sentBegin()
        case .block:
            handle?.send("BEGIN ISOLATION LEVEL READ COMMITTED")
            pipeline.sentBlockBegin()
            let configuration = client.configuration
            setLockTimeout(lane == .leases ? configuration.lockTimeout : configuration.sharedLockTimeout)
        }
    }

    /// Limits waits for locks in the current transaction on all of its nodes. A session's setting applies to its own
    /// node only.
    func setLockTimeout(_ timeout: Duration) {
        guard isDistributed else { return }
        handle?.send("SET LOCAL lock_timeout = \(timeout.setting)")
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
        guard let handle else { return execution.resume(.again) }
        handle.requestReplies()
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
        guard let handle else { return execution.resume(.again) }
        let definition = client.catalog.definitions[number]
        let name = definition.preparedName(epoch: pipeline.epoch)
        execution.sends(number, definition.meaning)
        if pipeline.needsPreparation(number), handle.prepare(name, definition.sql, &client.parameters) {
            pipeline.sentPreparation(statement: number)
        }
        if !handle.isBroken { handle.execute(name, &client.parameters) }
        execution.expectResult()
        // Recorded even when sending failed: the connection ends with this loop iteration, and the request fails then.
        pipeline.sentStatement(number, of: execution, isFirst: batch.takeFirst())
    }

    /// Sends the commands that must precede everything else.
    private func settleDebts() {
        if pipeline.owesRollBack {
            sync()
            handle?.send("ROLLBACK")
            pipeline.sentRollBack()
            batch.addCommand()
            sync()
        }
        // Deallocates statements under unused names. In a transaction on a lease this could fail, so a lease is not
        // reused instead. A session from a pooler is not reused either.
        if pipeline.owesCleanUp, lane != .leases, client.keepsSessions {
            sync()
            handle?.send("DEALLOCATE ALL")
            pipeline.sentCleanUp()
            batch.addCommand()
            sync()
        }
    }

    private func sync() {
        guard let handle, batch.kind != .none, !handle.isBroken else { return }
        if batch.kind == .block {
            _ = handle.sync()
            handle.send("COMMIT")
            pipeline.sentBlockEnd()
        }
        batch.end()
        if handle.sync() { pipeline.sentSync() }
    }

    /// Ends the group, if one was begun and all of its members were sent.
    /// - Returns: False if members are still to be sent. Their tasks schedule another flush.
    private func endGroup() -> Bool {
        guard batch.kind == .group else { return true }
        if batch.isIncomplete && !isBroken { return false }
        handle?.send("COMMIT")
        pipeline.sentCommit()
        return true
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

/// Silence and failover: passes the connection's state to ``ConnectionSilence`` and performs its verdicts.
extension PostgresConnection {
    private var activity: ConnectionSilence.Activity {
        switch phase {
        case .opening, .settingUp: .opening
        case .open where pipeline.isIdle: .idle
        case .open: .waiting(isCommitting: lane == .commits || commitsUnderWay > 0)
        case .closed: .closed
        }
    }

    /// The number of servers; 0 before their names are resolved.
    private var serverCount: Int { opening?.serverCount ?? 0 }

    /// True if it was found usable in an earlier epoch.
    var isOutdated: Bool { epoch < client.epoch.current }

    /// Returns true if a reply has been pending for long enough to probe for another primary.
    func isSilent(_ now: ContinuousClock.Instant) -> Bool {
        silence.isSilent(activity, serverCount: serverCount, now: now)
    }

    /// Returns the facts on which decisions of a failover depend.
    func peer(now: ContinuousClock.Instant) -> FailoverMonitor.Peer {
        FailoverMonitor.Peer(
            id: id, epoch: epoch, isOpen: isOpen, isSilent: isSilent(now), serverStartedAt: serverEnd?.serverStartedAt,
            hasChoice: opening?.hasChoice ?? false)
    }

    /// Retires the connection, because another server is the primary now. Pending requests may still be answered.
    func supersede(now: ContinuousClock.Instant) {
        let leadsElsewhere = !HostList.isSame(serverIndex, client.epoch.preferredServer, among: serverCount)
        switch silence.supersede(activity, leadsElsewhere: leadsElsewhere, serverCount: serverCount, now: now) {
        case .none: break
        case .openingTimedOut:
            failure = failure ?? .timedOut
            end(.lost)
        case .close: end(.closed)
        case .retire:
            isRetiring = true
            client.connectionIsRetiring(self)
            checkDeadlines(now: now)
        }
    }

    /// Ends the connection when opening takes too long or the server is silent for too long.
    func checkDeadlines(now: ContinuousClock.Instant) {
        switch silence.check(activity, serverCount: serverCount, now: now) {
        case .none: break
        case .openingTimedOut:
            failure = failure ?? opening?.resolutionFailure ?? .timedOut
            if lane != .probe { client.demote(host: serverIndex) }
            end(.lost)
        case .lost: end(.lost)
        case .givenUp: end(.silent)
        case .stalled: client.connectionStalled(self)
        }
    }
}
