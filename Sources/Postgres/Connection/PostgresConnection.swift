internal import CLibPQ
internal import EventLoop

/// One connection in pipeline mode: opens, sends what it is given, and hands each answer to the request it belongs to.
///
/// Lives on its loop. What is sent during a turn of the loop is written at the turn's end.
final class PostgresConnection: TurnEndObserver {
    enum Phase {
        case opening, settingUp, open, closed
    }

    let id: ConnectionID
    let lane: PoolStateMachine<Execution>.Lane
    /// Which of several servers was tried first.
    let rotation: Int
    // The client closes its connections before it goes.
    unowned let client: PostgresClient
    private let loop: EventLoop
    var opening: ConnectionOpening?
    private var handle: ConnectionHandle?
    private var watch: DescriptorWatch?
    var phase = Phase.opening
    var pipeline = PipelineStateMachine<Execution>()
    /// Why a statement's last preparation failed: the answer for those that were sent before it was known.
    private var preparationErrors: [Int: PostgresError] = [:]
    let openingDeadline: ContinuousClock.Instant
    /// The server's end, once it is known.
    private(set) var serverEnd: ServerEnd?
    /// Whether another server has taken over from this one.
    var isSuperseded = false
    /// Whether the server is one node of a cluster, to which a batch is no transaction.
    var isDistributed: Bool { serverEnd?.isDistributed ?? false }
    /// Why it is of no use, when it is not the connection itself that says so.
    var failure: ConnectionFailure?
    /// Whether the client was told that a commit is silent.
    var isStalled = false
    /// Requests under way that end a transaction on a lease.
    var commitsUnderWay = 0
    var lastHeard: ContinuousClock.Instant

    /// What was sent since the last sync.
    enum OpenBatch {
        case none, readOnly, single, block, group
    }
    var openBatch = OpenBatch.none
    /// Requests that have yet to be sent as members of a group.
    var expectedMembers = 0
    private var sendsFirstStatement = false
    var asksForTurnEnd = false
    private(set) var isBroken = false

    init(id: ConnectionID, lane: PoolStateMachine<Execution>.Lane, rotation: Int, client: PostgresClient) {
        self.id = id
        self.lane = lane
        self.rotation = rotation
        self.client = client
        loop = client.loop
        lastHeard = loop.now
        let configuration = client.configuration
        openingDeadline = loop.now + (lane == .scout ? configuration.takeoverPatience : configuration.connectTimeout)
    }

    /// Whether requests can be sent.
    var isOpen: Bool { phase == .open && !isBroken }

    /// Whether the server has said that its session is of no use to further requests.
    var isRetiring = false

    /// Whether a statement was sent that left the connection with more memory than others need: libpq's buffer for what it
    /// sends only grows.
    private var isOutgrown = false

    /// From so many bytes on a statement is worth a connection of its own.
    private static let lastingByteLimit = 1_048_576

    /// Whether the session is as it was after it was set up.
    var isReusable: Bool { isOpen && !isRetiring && !isOutgrown && !pipeline.owesCleanUp }

    /// Whether no request is under way.
    var isIdle: Bool { pipeline.isIdle }

    // MARK: Opening

    /// Starts to connect.
    func open() {
        let opening = ConnectionOpening(loop: loop) { [unowned self] handle in
            guard let handle else { return end(.lost) }
            self.handle = handle
            setUp(handle.pointer)
        }
        self.opening = opening
        let hosts = HostList(client.configuration.connectionOptions)
        opening.start(hosts, rotation: rotation, isAlone: lane == .scout)
    }

    private func setUp(_ connection: OpaquePointer) {
        guard PQsetnonblocking(connection, 1) == 0, PQenterPipelineMode(connection) == 1 else { return end(.lost) }
        phase = .settingUp
        lastHeard = loop.now
        guard watchSocket(of: connection) else { return end(.lost) }
        let execution = Execution()
        execution.completion = { [unowned self, unowned execution] outcome in
            if case .failed(.server(let error)) = outcome { failure = .server(error.state) }
            guard case .succeeded = outcome else { return end(.lost) }
            serverEnd = (try? execution.takeRows(of: SetUpSession.self, at: 0))?.first
            phase = .open
            client.connectionOpened(self)
        }
        beginRequest(isReadOnly: false)
        send(SetUpSession(configuration: client.configuration), for: execution)
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

    // MARK: Sending

    /// Starts a request: the statements that are sent until the next call belong together.
    /// - Parameter isTransaction: Whether it has several statements that write, and no transaction of its own.
    func beginRequest(isReadOnly: Bool, isTransaction: Bool = false) {
        if pipeline.isIdle { lastHeard = loop.now }
        if expectedMembers > 0 {
            beginMember()
        } else {
            if openBatch == .single || openBatch == .block || openBatch == .readOnly && !isReadOnly { sync() }
            settleDebts()
            openBatch = isReadOnly ? .readOnly : .single
            if isDistributed && isTransaction { beginBlock() }
        }
        sendsFirstStatement = true
        loop.notifyAtEndOfTurn(self)
    }

    /// Bounds waits for locks in the transaction that was begun on every node that takes part in it: a session's setting
    /// stays on the node that it is connected to.
    func setLockTimeout(_ timeout: Duration) {
        guard isDistributed else { return }
        sendSimple("SET LOCAL lock_timeout = \(timeout.setting)")
        pipeline.sentSetting()
    }

    /// Says that the request that was begun is the end of a transaction and nothing else.
    func expectCommit(_ execution: Execution) {
        execution.commits = true
        execution.isCommit = true
        commitsUnderWay += 1
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
        if execution.statement < 0 || client.catalog.definitions[execution.statement].isOfClient {
            execution.statement = number
        }
        let isUnknown = pipeline.needsPreparation(number)
        if client.parameters.byteCount > Self.lastingByteLimit { isOutgrown = true }
        let isSent = client.parameters.withArrays { count, types, values, lengths, formats in
            if isUnknown {
                guard PQsendPrepare(connection, name, definition.sql, count, types) == 1 else { return false }
                pipeline.sentPreparation(statement: number)
            }
            return PQsendQueryPrepared(connection, name, count, values, lengths, formats, 1) == 1
        }
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
        // might fail; a lease is not used again instead.
        if pipeline.owesCleanUp, lane != .leases {
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

    func turnEnded() {
        guard endGroup() else { return }
        sync()
        if isBroken { return end(.lost) }
        flush()
        // In an aborted pipeline libpq answers by itself, without the socket becoming readable.
        if pipeline.isAborted { receive() }
    }

    private func flush() {
        guard let connection = handle?.pointer else { return }
        switch PQflush(connection) {
        case 0: watch?.setWriting(false)
        case 1: watch?.setWriting(true)
        default: end(.lost)
        }
    }

    // MARK: Receiving

    private func read() {
        guard let connection = handle?.pointer else { return }
        lastHeard = loop.now
        repeat {
            if isStalled {
                isStalled = false
                client.connectionWasHeard(self)
            }
            let isAlive = PQconsumeInput(connection) == 1
            // What came before the end, above all the server's last error, still counts.
            receive()
            if !isAlive { return end(.lost) }
        } while handle != nil && saltern_has_pending_tls_input(connection) != 0
    }

    private func receive() {
        // A result that is nil separates the results of two statements; several in a row mean that there is no more.
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
            // Without a code it is libpq's own report that the connection is gone.
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
        // A node says the same of its connections to other nodes, which end nothing here.
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
        isInDoubt = handle?.takeWarning() ?? false
        defer { isInDoubt = false }
        while let (execution, verdict) = pipeline.nextVerdict() {
            client.requestEnded(on: self)
            settle(execution, verdict)
        }
        // Nobody may come for a while.
        if pipeline.owesRollBack && isOpen {
            settleDebts()
            loop.notifyAtEndOfTurn(self)
        }
    }

    private func settle(_ execution: Execution, _ verdict: PipelineStateMachine<Execution>.Verdict) {
        if execution.isCommit { commitsUnderWay -= 1 }
        if execution.isAbandoned { return client.abandonedRequestEnded(execution) }
        switch verdict {
        // A warning while it committed: the change is there, but a standby may not have it.
        case .succeeded where isInDoubt && execution.commits: execution.resume(.failed(.commitInDoubt))
        case .succeeded: execution.resume(.succeeded)
        case .failed: execution.resume(.failed(execution.error ?? .connectionLost))
        case .again: execution.resume(.again)
        case .lost: execution.resume(.failed(endReason == .silent ? .timedOut : .connectionLost))
        }
    }

    // MARK: End

    /// Why a connection ended.
    enum EndReason {
        case lost, silent, closed
    }
    private var endReason = EndReason.lost
    private var isInDoubt = false

    /// Closes the connection and tells everybody who waited for it.
    func end(_ reason: EndReason) {
        guard phase != .closed else { return }
        let wasOpening = phase == .opening || phase == .settingUp
        if wasOpening && reason == .lost, failure == nil {
            failure =
                handle.map { ConnectionFailure(message: String(cString: PQerrorMessage($0.pointer))) }
                ?? opening?.failure
        }
        phase = .closed
        endReason = reason
        opening?.cancel()
        watch?.cancel()
        watch = nil
        handle = nil
        for (execution, verdict) in pipeline.end() { settle(execution, verdict) }
        if wasOpening && reason == .lost && lane != .scout { client.connectionFailed(failure ?? .other) }
        client.connectionEnded(self, isGivenUp: reason == .silent)
    }
}
