internal import EventLoop
internal import Glibc
internal import HTTPCore
internal import Synchronization
internal import TransportSecurity

/// One loop's part of a server: its listening socket and its connections. Lives on the loop's thread.
final class HTTPListener {
    let loop: EventLoop
    var responder: any Responder
    let configuration: HTTPServerConfiguration
    let quota: ConnectionQuota
    let statistics: HTTPServerStatistics
    /// The TLS context of new connections; nil for plain HTTP.
    var context: TLSServerContext?
    /// The places of active requests.
    var places: RequestPlaces

    /// The buffers of all connections of the loop, so that an idle connection holds none.
    let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 * 1_024, alignment: 16)
    var writeBuffer = ZeroizingBuffer(capacity: 16 * 1_024)
    private var dateSecond = -1
    private var dateValue = HTTPDate(secondsSinceEpoch: 0)

    /// One socket, or more after a handover from a process with more loops.
    private var acceptors: [Acceptor] = []
    private var retryTimer: LoopTimer?
    private var connections: [ObjectIdentifier: HTTPConnection] = [:]
    /// Connections from proxies before the name of the client.
    private var arrivals: [ObjectIdentifier: ProxiedArrival] = [:]
    private var isDraining = false
    private var acceptCount = 0
    private var drained: CheckedContinuation<Void, Never>?

    /// The number of connections that are accepted before the loop serves the others again.
    private static let acceptsPerIteration = 64
    private static let exhaustionPause: Duration = .milliseconds(100)

    init(
        loop: EventLoop, responder: any Responder, configuration: HTTPServerConfiguration, quota: ConnectionQuota,
        statistics: HTTPServerStatistics, context: TLSServerContext?
    ) {
        self.loop = loop
        self.responder = responder
        self.configuration = configuration
        self.quota = quota
        self.statistics = statistics
        self.context = context
        places = RequestPlaces(
            total: configuration.maximumConcurrentRequestsPerLoop, share: configuration.requestShare)
    }

    deinit { readBuffer.deallocate() }

    /// Listens at every address of this machine that `address` stands for. Returns their port.
    func listen(at address: SocketAddress, joining: Bool) throws(ListenError) -> UInt16 {
        try address.listen(joining: joining) { _ = take($0) }.port
    }

    /// Takes a socket, and accepts nothing before ``startAccepting()``. Returns its port.
    private func take(_ socket: consuming ListeningSocket) -> UInt16 {
        let port = socket.port
        acceptors.append(Acceptor(socket, loop: loop) { [unowned self] in acceptWaiting($0) })
        return port
    }

    /// Takes ownership of sockets that already listen at `address`. Returns their port.
    func take(_ descriptors: [CInt], at address: SocketAddress) throws -> UInt16 {
        var port = address.port
        // All are owned before one can fail.
        var failure: ListenError?
        for descriptor in descriptors {
            let owned = try OwnedDescriptor(takingOwnershipOf: descriptor)
            do throws(ListenError) {
                port = take(try ListeningSocket(inheriting: owned, at: address))
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return port
    }

    /// Accepts from its sockets. Without effect when repeated, and after a stop.
    func startAccepting() {
        if acceptors.isEmpty { return }
        for acceptor in acceptors { acceptor.resume() }
        if retryTimer != nil { return }
        retryTimer = LoopTimer(loop: loop) { [unowned self] in for acceptor in acceptors { acceptor.resume() } }
    }

    /// Returns copies, which the caller closes.
    func copyListeningSockets() -> [CInt] {
        acceptors.compactMap { try? OwnedDescriptor(copying: $0.socket.rawValue).release() }
    }

    /// The refusal of further requests during overload.
    var overload: Refusal { .overloaded(retryAfter: configuration.retryAfterOverload) }

    /// Stops accepting, and returns when all connections have had their reply and are closed.
    func drain() async {
        stopAccepting()
        isDraining = true
        for connection in connections.values { connection.drain() }
        guard !isEmpty else { return }
        let grace = LoopTimer(loop: loop) { [unowned self] in
            for connection in connections.values { connection.drainGracePassed() }
        }
        defer { grace.cancel() }
        grace.schedule(after: configuration.drainGrace)
        await withCheckedContinuation { drained = $0 }
    }

    /// Closes all open connections.
    func closeAll() {
        stopAccepting()
        for arrival in arrivals.values {
            arrival.close()
            quota.close(from: arrival.peer)
        }
        arrivals.removeAll()
        for connection in connections.values { connection.close() }
        noteEnd()
    }

    func remove(_ connection: HTTPConnection) {
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        quota.close(from: connection.client)
        noteEnd()
    }

    private var isEmpty: Bool { connections.isEmpty && arrivals.isEmpty }

    /// Ends ``drain()`` when no connection is open.
    private func noteEnd() {
        if isEmpty, let drained = drained.take() { drained.resume() }
    }

    var connectionCount: Int { connections.count + arrivals.count }

    /// The `Date` of replies, computed once a second.
    var date: HTTPDate {
        let second = time(nil)
        if second != dateSecond {
            dateSecond = second
            dateValue = HTTPDate(secondsSinceEpoch: second)
        }
        return dateValue
    }

    private func stopAccepting() {
        for acceptor in acceptors { acceptor.stop() }
        acceptors.removeAll()
        retryTimer?.cancel()
        retryTimer = nil
    }

    private func acceptWaiting(_ acceptor: Acceptor) {
        for _ in 0..<Self.acceptsPerIteration {
            switch acceptor.socket.accept() {
            case .connection(let descriptor, let client):
                if configuration.proxyProtocolSenders.contains(client.ip) {
                    awaitProxyHeader(descriptor, client)
                } else {
                    open(descriptor, client)
                }
            case .none: return
            case .exhausted:
                // The waiting connection stays readable. Without a pause the loop would spin.
                acceptor.pause()
                retryTimer?.schedule(after: Self.exhaustionPause)
                return
            }
        }
    }

    /// Waits until the proxy has named the client. Until then the connection counts in the total.
    private func awaitProxyHeader(_ descriptor: consuming OwnedDescriptor, _ proxy: ClientAddress) {
        guard quota.open(from: proxy) != .drop else {
            statistics.noteDrop(ofAddress: false)
            return
        }
        let arrival = ProxiedArrival(
            takingOwnershipOf: descriptor, from: proxy, loop: loop, deadline: configuration.proxyHeaderDeadline
        ) { [unowned self] in proxyHeaderEnded($0, $1) }
        arrivals[ObjectIdentifier(arrival)] = arrival
    }

    private func proxyHeaderEnded(_ arrival: ProxiedArrival, _ header: ProxyHeader?) {
        arrivals[ObjectIdentifier(arrival)] = nil
        quota.close(from: arrival.peer)
        if let header, let descriptor = arrival.takeDescriptor() {
            open(descriptor, header.client ?? arrival.peer)
        } else {
            // Counted before the client can notice the end.
            statistics.refusedProxyHeaders.add(1, ordering: .relaxed)
            arrival.close()
        }
        noteEnd()
    }

    private func open(_ descriptor: consuming OwnedDescriptor, _ client: ClientAddress) {
        if configuration.replacesOldestIdle { makeRoom(for: client) }
        let decision = quota.open(from: client)
        switch decision {
        case .serve, .refusePolitely: break
        case .drop: return statistics.noteDrop(ofAddress: false)
        case .dropOfAddress: return statistics.noteDrop(ofAddress: true)
        }
        guard let transport = try? Transport(takingOwnershipOf: descriptor, context: context) else {
            quota.close(from: client)
            return
        }
        statistics.acceptedConnections.add(1, ordering: .relaxed)
        acceptCount += 1
        let connection = HTTPConnection(
            transport: transport, client: client, listener: self, number: acceptCount,
            isOverLimit: decision == .refusePolitely)
        connections[ObjectIdentifier(connection)] = connection
        connection.start()
        if isDraining { connection.drain() }
    }

    /// Closes the oldest connection without an active request, if a limit requires it.
    private func makeRoom(for client: ClientAddress) {
        let shortage = quota.shortage(for: client)
        if shortage == .none { return }
        let candidates = connections.values.filter {
            !$0.machine.hasRequest && (shortage == .ofAll || $0.client.ip.network == client.ip.network)
        }
        guard let oldest = candidates.min(by: { $0.number < $1.number }) else { return }
        statistics.noteDrop(ofAddress: shortage == .ofAddress)
        oldest.close()
    }
}

/// The places of active requests: a total, and a limit for each network.
struct RequestPlaces {
    let total: Int
    /// The maximum number of places of one network.
    let share: Int
    private(set) var taken = 0
    private var takenByNetwork: [UInt64: Int] = [:]

    init(total: Int, share: Int) {
        self.total = total
        self.share = share
    }

    /// Returns whether there is a place for this network.
    func hasRoom(for network: UInt64) -> Bool { taken < total && takenByNetwork[network, default: 0] < share }

    /// Takes a place, if there is one.
    mutating func take(for network: UInt64) -> Bool {
        guard hasRoom(for: network) else { return false }
        taken += 1
        takenByNetwork[network, default: 0] += 1
        return true
    }

    /// Returns a place.
    mutating func give(of network: UInt64) {
        taken -= 1
        let left = takenByNetwork[network, default: 1] - 1
        takenByNetwork[network] = left > 0 ? left : nil
    }
}

/// A listening socket with a watch for waiting connections. Lives on its loop.
final class Acceptor {
    let socket: ListeningSocket
    private let watch: DescriptorWatch

    /// Creates an acceptor, which accepts nothing before ``resume()``.
    /// - Parameter accept: Called when connections wait.
    init(_ socket: consuming ListeningSocket, loop: EventLoop, accept: @escaping (Acceptor) -> Void) {
        final class Place {
            weak var acceptor: Acceptor?
        }
        let place = Place()
        watch = DescriptorWatch(loop: loop, descriptor: socket.rawValue) { _ in
            if let acceptor = place.acceptor { accept(acceptor) }
        }
        self.socket = socket
        place.acceptor = self
    }

    func pause() { watch.setReading(false) }
    func resume() { watch.setReading(true) }

    /// Stops accepting. Call it before the last reference is released.
    func stop() { watch.cancel() }
}
