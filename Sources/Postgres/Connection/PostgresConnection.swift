internal import CLibPQ
internal import EventLoop

/// One connection in pipeline mode: opens, sends what it is given, and hands each answer to the request it belongs to.
///
/// Lives on its loop. What is sent during a turn of the loop is written at the turn's end.
final class PostgresConnection: IterationObserver {
    enum Phase {
        case opening, settingUp, open, closed
    }

    let id: ConnectionID
    let lane: PoolStateMachine<Execution>.Lane
    /// Which of several servers was tried first.
    let rotation: Int
    /// Of who looks whether another server has taken over: where he looks.
    let probeTarget: ProbeTarget?
    // The client closes its connections before it goes.
    unowned let client: PostgresClient
    let loop: EventLoop
    var opening: ConnectionOpening?
    private(set) var handle: ConnectionHandle?
    private(set) var watch: DescriptorWatch?
    var phase = Phase.opening
    var pipeline = PipelineStateMachine<Execution>()
    /// Why a statement's last preparation failed: the answer for those that were sent before it was known.
    var preparationErrors: [Int: PostgresError] = [:]
    let openingDeadline: ContinuousClock.Instant
    /// The server's end, once it is known.
    private(set) var serverEnd: ServerEnd?
    /// The one in which it was found to be good; before that none is later.
    var epoch = Int.max
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
    var lastReceived: ContinuousClock.Instant

    /// What was sent since the last sync.
    enum OpenBatch {
        case none, readOnly, single, block, group
    }
    var openBatch = OpenBatch.none
    /// Requests that have yet to be sent as members of a group.
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

    /// Whether requests can be sent.
    var isOpen: Bool { phase == .open && !isBroken }

    /// Whether the server has said that its session is of no use to further requests.
    var isRetiring = false

    /// Whether a statement was sent that left the connection with more memory than others need: libpq's buffer for what it
    /// sends only grows.
    var isOutgrown = false

    /// From so many bytes on a statement is worth a connection of its own.
    static let lastingByteLimit = 1_048_576

    /// Whether the session is as it was after it was set up.
    var isReusable: Bool { isOpen && !isRetiring && !isOutgrown && !pipeline.owesCleanUp }

    /// Whether no request is under way.
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

    /// Why a connection ended.
    enum EndReason {
        case lost, silent, closed
    }
    private(set) var endReason = EndReason.lost
    /// Whether the server has warned while it committed.
    var isInDoubt = false

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
        if wasOpening && reason == .lost && lane != .probe { client.connectionFailed(failure ?? .other) }
        client.connectionEnded(self, isGivenUp: reason == .silent)
    }
}
