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
    let lane: PoolStateMachine<Execution>.Lane
    /// The index of the server that was tried first.
    let rotation: Int
    /// The host that this connection probes for a takeover; nil for ordinary connections.
    let probeTarget: ProbeTarget?
    // The client closes its connections before it is released.
    unowned let client: PostgresClient
    let loop: EventLoop
    var opening: ConnectionOpening?
    private(set) var handle: ConnectionHandle?
    private(set) var watch: DescriptorWatch?
    var phase = Phase.opening
    var pipeline = PipelineStateMachine<Execution>()
    /// The error of a statement's last preparation, also for executions that were sent before it arrived.
    var preparationErrors: [Int: PostgresError] = [:]
    let openingDeadline: ContinuousClock.Instant
    /// The server's end, once it is received.
    private(set) var serverEnd: ServerEnd?
    /// The generation in which it was found usable; until then, later than all others.
    var epoch = Int.max
    /// True if another server has taken over from this one.
    var isSuperseded = false
    /// True if the server is a cluster node, which does not run a batch as a transaction.
    var isDistributed: Bool { serverEnd?.isDistributed ?? false }
    /// The reason of a failure that the connection itself does not report.
    var failure: ConnectionFailure?
    /// True if the client was notified of a silent commit.
    var isStalled = false
    /// The number of pending requests that end a transaction on a lease.
    var commitsUnderWay = 0
    var lastReceived: ContinuousClock.Instant

    /// The kind of batch sent since the last sync.
    enum OpenBatch {
        case none, readOnly, single, block, group
    }
    var openBatch = OpenBatch.none
    /// The number of group members still to be sent.
    var expectedMembers = 0
    var sendsFirstStatement = false
    var isIterationEndRequested = false
    var isBroken = false

    init(
        id: ConnectionID, lane: PoolStateMachine<Execution>.Lane, rotation: Int, probeTarget: ProbeTarget? = nil,
        client: PostgresClient
    ) {
        self.id = id
        self.lane = lane
        self.rotation = rotation
        self.probeTarget = probeTarget
        self.client = client
        loop = client.loop
        lastReceived = loop.now
        openingDeadline = loop.now + client.configuration.connectTimeout
    }

    /// True if requests can be sent.
    var isOpen: Bool { phase == .open && !isBroken }

    /// True if the server has reported that its session takes no further requests.
    var isRetiring = false

    /// True after a statement that left the connection with more memory than others need. libpq's send buffer only
    /// grows.
    var isOutgrown = false

    /// Minimum size, in bytes, of a statement that is worth its own connection.
    static let lastingByteLimit = 1_048_576

    /// True if the session is unchanged since its set-up.
    var isReusable: Bool { isOpen && !isRetiring && !isOutgrown && !pipeline.owesCleanUp }

    /// True if no request is in progress.
    var isIdle: Bool { pipeline.isIdle }

    // MARK: Opening

    /// Starts to connect.
    func open() {
        let opening = ConnectionOpening(loop: loop) { [unowned self] in
            lastReceived = loop.now
        } completion: { [unowned self] handle in
            guard let handle else { return end(.lost) }
            self.handle = handle
            setUp(handle.pointer)
        }
        self.opening = opening
        let hosts = HostList(client.configuration.connectionOptions(for: lane))
        opening.start(hosts, rotation: rotation, isAlone: lane == .probe, resolver: client.resolver)
    }

    private func setUp(_ connection: OpaquePointer) {
        guard PQsetnonblocking(connection, 1) == 0, PQenterPipelineMode(connection) == 1 else { return end(.lost) }
        phase = .settingUp
        lastReceived = loop.now
        guard watchSocket(of: connection) else { return end(.lost) }
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
    var isInDoubt = false

    /// Closes the connection and notifies all waiting requests.
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
        if wasOpening && reason == .lost && lane != .probe { client.connectionFailed(failure ?? .other) }
        client.connectionEnded(self, isGivenUp: reason == .silent)
    }
}
