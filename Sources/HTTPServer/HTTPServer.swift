public import EventLoop
public import HTTPCore
public import Synchronization
public import TransportSecurity

/// An HTTP/1.1 server over TLS on one or more event loops, each with its own listener and its own responder.
public final class HTTPServer: Sendable {
    /// The served address, with the port that the system chose for port 0.
    public let address: SocketAddress
    /// Counters for metrics.
    public let statistics: HTTPServerStatistics

    private let listeners: [LoopBound<HTTPListener>]
    private let quota: ConnectionQuota

    /// Binds the address, or takes over bound sockets. Connections wait until ``startAccepting()``.
    /// - Parameters:
    ///   - address: The address to listen at.
    ///   - context: The TLS context of new connections. Nil for plain HTTP, only for a loopback listener.
    ///   - configuration: Limits and deadlines.
    ///   - inherited: Sockets that already listen at `address`, to take over instead of binding.
    ///   - loops: Running loops, each with the responder of its requests. At least one.
    /// - Throws: ``ListenError``.
    public init(
        address: SocketAddress, context: TLSServerContext?, configuration: HTTPServerConfiguration = .init(),
        inherited: ListeningSockets? = nil, loops: [(loop: EventLoop, responder: any Responder)]
    ) async throws {
        precondition(context != nil || address.isLoopback, "plain HTTP is for loopback addresses only")
        let quota = ConnectionQuota(configuration)
        let statistics = HTTPServerStatistics()
        var listeners: [LoopBound<HTTPListener>] = []
        var bound = address
        do {
            for (index, (loop, responder)) in loops.enumerated() {
                let target = bound
                let (listener, port) = try await loop.run {
                    let listener = HTTPListener(
                        loop: loop, responder: responder, configuration: configuration, quota: quota,
                        statistics: statistics, context: context)
                    do {
                        let port =
                            if let inherited {
                                try listener.take(inherited.copies(forLoop: index, of: loops.count), at: target)
                            } else {
                                try listener.listen(at: target, joining: index > 0)
                            }
                        return (LoopBound(listener, loop: loop), port)
                    } catch {
                        listener.closeAll()
                        throw error
                    }
                }
                listeners.append(listener)
                bound = SocketAddress(host: address.host, port: port)
            }
        } catch {
            for listener in listeners { await listener.loop.run { listener.value.closeAll() } }
            throw error
        }
        self.address = bound
        self.statistics = statistics
        self.quota = quota
        self.listeners = listeners
    }

    /// Begins to accept connections.
    public func startAccepting() async {
        for listener in listeners { await listener.loop.run { listener.value.startAccepting() } }
    }

    /// The maximum number of connections.
    public var connectionLimit: Int { quota.maximum }

    /// The number of open connections.
    public var connectionCount: Int { quota.total }

    /// The number of active requests on all loops.
    var requestsUnderWay: Int {
        get async {
            var count = 0
            for listener in listeners { count += await listener.loop.run { listener.value.places.taken } }
            return count
        }
    }

    /// The number of open connections on each loop.
    var connectionsByLoop: [Int] {
        get async {
            var counts: [Int] = []
            for listener in listeners { counts.append(await listener.loop.run { listener.value.connectionCount }) }
            return counts
        }
    }

    /// Uses `context` for new connections, and `responders`, one for each loop, for new requests. Open connections keep
    /// their TLS context.
    public func replace(_ context: TLSServerContext, responders: [any Responder]) {
        precondition(responders.count == listeners.count, "every loop has a responder")
        for (listener, responder) in zip(listeners, responders) {
            listener.loop.schedule {
                listener.value.context = context
                listener.value.responder = responder
            }
        }
    }

    /// Returns copies of the sockets for another process that continues to accept from them.
    ///
    /// One of each loop comes first, then the next, so that each loop of the other process gets one of each address.
    public func copyListeningSockets() async -> ListeningSockets {
        var copies: [[CInt]] = []
        for listener in listeners { copies.append(await listener.loop.run { listener.value.copyListeningSockets() }) }
        let longest = copies.map(\.count).max() ?? 0
        return ListeningSockets(
            takingOwnershipOf: (0..<longest).flatMap { place in copies.compactMap { $0.dropFirst(place).first } })
    }

    /// The numeric addresses of accepted connections: those that ``address`` stands for and the machine has.
    public var listeningAddresses: [SocketAddress] {
        get async { await copyListeningSockets().addresses }
    }

    /// Stops accepting, lets active requests finish, and closes the others after `deadline`.
    public func drain(deadline: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            for listener in listeners {
                group.addTask { await listener.loop.run { await listener.value.drain() } }
            }
            let closing = Task {
                try await Task.sleep(for: deadline)
                for listener in self.listeners { listener.loop.schedule { listener.value.closeAll() } }
            }
            await group.waitForAll()
            closing.cancel()
        }
    }
}

/// The counters of a server since its start, for metrics. All loops add to them.
public final class HTTPServerStatistics: Sendable {
    /// Connections accepted.
    public let acceptedConnections = Atomic<Int>(0)
    /// Connections closed at once because of a limit.
    public let droppedConnections = Atomic<Int>(0)
    /// Those of them that exceeded the limit of an address.
    public let droppedOfAddress = Atomic<Int>(0)
    /// Connections of proxies that were closed because no valid header named the client.
    public let refusedProxyHeaders = Atomic<Int>(0)
    /// TLS handshakes that ended without a connection.
    public let failedHandshakes = Atomic<Int>(0)
    /// TLS handshakes completed.
    public let completedHandshakes = Atomic<Int>(0)

    init() {}

    func noteDrop(ofAddress isOfAddress: Bool) {
        droppedConnections.add(1, ordering: .relaxed)
        if isOfAddress { droppedOfAddress.add(1, ordering: .relaxed) }
    }
}
