internal import CLibPQ
internal import EventLoop

/// One connection in pipeline mode: opens, sends what it is given, and hands each answer to the request it belongs to.
///
/// Lives on its loop. What is sent during a turn of the loop is written at the turn's end.
final class PostgresConnection: TurnEndObserver {
    typealias ID = PoolStateMachine.ConnectionID

    private enum Phase {
        case opening, settingUp, open, closed
    }

    let id: ID
    // The client closes its connections before it goes.
    private unowned let client: PostgresClient
    private let loop: EventLoop
    private var handle: ConnectionHandle?
    private var watch: DescriptorWatch?
    private var phase = Phase.opening
    private var pipeline = PipelineStateMachine<Execution>()
    /// By the number of the statement in the client's catalogue; said as soon as a preparation is sent.
    private var isPrepared: [Bool] = []
    /// Why a statement's last preparation failed: the answer for those that were sent before it was known.
    private var preparationErrors: [Int: PostgresError] = [:]
    private let openingDeadline: ContinuousClock.Instant
    private var lastHeard: ContinuousClock.Instant

    /// What was sent since the last sync.
    private enum OpenBatch {
        case none, readOnly, single
    }
    private var openBatch = OpenBatch.none
    private var sendsFirstStatement = false
    private var willBeNotified = false
    private var isBroken = false

    init(id: ID, client: PostgresClient) {
        self.id = id
        self.client = client
        loop = client.loop
        lastHeard = loop.now
        openingDeadline = loop.now + client.configuration.connectTimeout
    }

    /// Whether requests can be sent.
    var isOpen: Bool { phase == .open && !isBroken }

    /// Whether the server has said that its session is of no use to further requests.
    private(set) var isRetiring = false

    /// Whether no request is under way.
    var isIdle: Bool { pipeline.isIdle }

    // MARK: Opening

    /// Starts to connect. `rotation` says which of several servers is tried first.
    func open(rotation: Int) {
        let hosts = HostList(client.configuration.connectionOptions)
        let names = hosts.names
        if names.isEmpty { return open(hosts.options(addresses: [:], rotation: rotation)) }
        let bound = LoopBound(self, loop: loop)
        HostResolver.resolve(names, loop: loop) { addresses in
            bound.value.open(hosts.options(addresses: addresses, rotation: rotation))
        }
    }

    private func open(_ options: HostList.Options?) {
        // The client may have given it up while the names were looked up.
        guard phase == .opening else { return }
        guard let options, let handle = ConnectionHandle(starting: options),
            PQstatus(handle.pointer) != CONNECTION_BAD
        else { return end(.lost) }
        self.handle = handle
        // libpq says that a fresh connection behaves as if the last poll had answered "writing".
        watchSocket { $0.setWriting(true) }
    }

    private func pollOpening() {
        guard let handle else { return }
        // The poll may close this socket and open another under the same number.
        watch?.cancel()
        watch = nil
        switch PQconnectPoll(handle.pointer) {
        case PGRES_POLLING_READING: watchSocket { $0.setReading(true) }
        case PGRES_POLLING_WRITING: watchSocket { $0.setWriting(true) }
        case PGRES_POLLING_OK: setUp(handle.pointer)
        default: end(.lost)
        }
    }

    private func setUp(_ connection: OpaquePointer) {
        guard PQsetnonblocking(connection, 1) == 0, PQenterPipelineMode(connection) == 1 else { return end(.lost) }
        phase = .settingUp
        lastHeard = loop.now
        watchSocket { $0.setReading(true) }
        let execution = Execution { [unowned self] outcome in
            guard case .succeeded = outcome else { return end(.lost) }
            phase = .open
            client.connectionOpened(self)
        }
        beginRequest(isReadOnly: false)
        send(SetUpSession(configuration: client.configuration), for: execution)
    }

    private func watchSocket(_ setInterest: (DescriptorWatch) -> Void) {
        guard let handle else { return }
        let descriptor = PQsocket(handle.pointer)
        guard descriptor >= 0 else { return end(.lost) }
        let watch = DescriptorWatch(loop: loop, descriptor: descriptor) { [unowned self] readiness in
            switch (phase, readiness) {
            case (.opening, _): pollOpening()
            case (.closed, _): break
            case (_, .readable): read()
            case (_, .writable): flush()
            }
        }
        setInterest(watch)
        self.watch = watch
    }

    // MARK: Sending

    /// Starts a request: the statements that are sent until the next call belong together.
    func beginRequest(isReadOnly: Bool) {
        if openBatch == .single || openBatch == .readOnly && !isReadOnly { sync() }
        openBatch = isReadOnly ? .readOnly : .single
        sendsFirstStatement = true
        if pipeline.isIdle { lastHeard = loop.now }
        if !willBeNotified {
            willBeNotified = true
            loop.notifyAtEndOfTurn(self)
        }
    }

    /// Sends one statement of the request that was begun.
    func send<S: Statement>(_ statement: S, for execution: Execution) {
        let number = client.catalog.number(of: S.self)
        client.parameters.removeAll()
        statement.bind(to: &client.parameters)
        sendBound(number, for: execution)
    }

    private func sendBound(_ number: Int, for execution: Execution) {
        guard let connection = handle?.pointer else { return }
        let definition = client.catalog.definitions[number]
        while isPrepared.count <= number { isPrepared.append(false) }
        let isSent = client.parameters.withArrays { count, types, values, lengths, formats in
            if !isPrepared[number] {
                guard PQsendPrepare(connection, definition.preparedName, definition.sql, count, types) == 1 else {
                    return false
                }
                isPrepared[number] = true
                pipeline.sentPreparation(statement: number)
            }
            return PQsendQueryPrepared(connection, definition.preparedName, count, values, lengths, formats, 1) == 1
        }
        // Told even when it was not sent: the connection ends with this turn, and the request learns of it then.
        pipeline.sentStatement(number, of: execution, isFirst: sendsFirstStatement)
        sendsFirstStatement = false
        if !isSent { isBroken = true }
    }

    private func sync() {
        guard let connection = handle?.pointer, openBatch != .none, !isBroken else { return }
        openBatch = .none
        if saltern_queue_pipeline_sync(connection) == 1 {
            pipeline.sentSync()
        } else {
            isBroken = true
        }
    }

    func turnEnded() {
        willBeNotified = false
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
        let answer: PipelineStateMachine<Execution>.Answer
        switch PQresultStatus(result) {
        case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY: answer = .success
        case PGRES_PIPELINE_SYNC: answer = .sync
        case PGRES_PIPELINE_ABORTED: answer = .aborted
        case PGRES_FATAL_ERROR: answer = .failure
        default:
            PQclear(result)
            return end(.lost)
        }
        var keepsResult = false
        defer { if !keepsResult { PQclear(result) } }
        switch pipeline.received(answer) {
        case .none: break
        case .prepared(let statement):
            if !preparationErrors.isEmpty { preparationErrors[statement] = nil }
        case .keep(let execution):
            keepsResult = true
            execution.keep(result)
        case .fail(let execution, let statement):
            fail(execution, with: result, statement: statement)
        case .failPreparation(let execution, let statement):
            isPrepared[statement] = false
            fail(execution, with: result, statement: statement)
            preparationErrors[statement] = execution.error
        case .forgetPreparation(let statement): isPrepared[statement] = false
        case .settle: settle()
        case .violation: end(.lost)
        }
    }

    private func fail(_ execution: Execution, with result: OpaquePointer, statement: Int?) {
        guard var error = ServerError(result: result) else {
            // libpq's own report that the connection is gone.
            return end(.lost)
        }
        if let statement { error.statement = client.catalog.definitions[statement].name }
        execution.error = .server(error)
        if error.state == .invalidStatementName, let statement {
            isPrepared[statement] = false
            if let reason = preparationErrors[statement] { execution.error = reason }
        }
        if error.state.endsSession {
            isRetiring = true
            client.connectionIsRetiring(self)
        }
    }

    private func settle() {
        while let (execution, verdict) = pipeline.nextVerdict() {
            client.requestEnded(on: self)
            settle(execution, verdict)
        }
    }

    private func settle(_ execution: Execution, _ verdict: PipelineStateMachine<Execution>.Verdict) {
        switch verdict {
        case .succeeded: execution.resume(.succeeded)
        case .failed:
            // The name was not known: nothing ran, and the next attempt prepares it again.
            if execution.error?.sqlState == .invalidStatementName {
                execution.resume(.again)
            } else {
                execution.resume(.failed(execution.error ?? .connectionLost))
            }
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

    /// Closes the connection and tells everybody who waited for it.
    func end(_ reason: EndReason) {
        guard phase != .closed else { return }
        phase = .closed
        endReason = reason
        watch?.cancel()
        watch = nil
        handle = nil
        for (execution, verdict) in pipeline.end() { settle(execution, verdict) }
        client.connectionEnded(self)
    }

    /// Gives the connection up when it takes too long to open or the server is silent for too long.
    func checkDeadlines(now: ContinuousClock.Instant) {
        switch phase {
        case .opening, .settingUp:
            if now >= openingDeadline {
                client.openingTimedOut()
                end(.lost)
            }
        case .open:
            if !pipeline.isIdle, now >= lastHeard + client.configuration.silenceTimeout { end(.silent) }
        case .closed: break
        }
    }
}
