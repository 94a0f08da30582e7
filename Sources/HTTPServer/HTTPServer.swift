public import EventLoop
public import HTTPCore
internal import Synchronization
public import TransportSecurity

/// An HTTP/1.1 server over TLS on one or more event loops, each with its own listener and its own responder.
public final class HTTPServer: Sendable {
    /// The address that is served, with the port that the system chose when 0 was asked for.
    public let address: SocketAddress
    /// Counters for metrics.
    public let statistics: HTTPServerStatistics

    private let listeners: [LoopBound<HTTPListener>]
    private let quota: ConnectionQuota

    /// Binds, or takes over what is bound. Connections wait until ``startAccepting()``.
    /// - Parameters:
    ///   - address: Where to listen.
    ///   - context: The TLS context of new connections; nil speaks plain HTTP, which is for a loopback listener only.
    ///   - configuration: Limits and deadlines.
    ///   - inherited: Sockets that listen at `address` already, to be taken over instead of binding.
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

    /// How many connections there may be.
    public var connectionLimit: Int { quota.maximum }

    /// Connections that are open now.
    public var connectionCount: Int { quota.total }

    /// Requests that are being answered now, on all loops.
    var requestsUnderWay: Int {
        get async {
            var count = 0
            for listener in listeners { count += await listener.loop.run { listener.value.places.taken } }
            return count
        }
    }

    /// Connections that are open now, on each loop.
    var connectionsByLoop: [Int] {
        get async {
            var counts: [Int] = []
            for listener in listeners { counts.append(await listener.loop.run { listener.value.connectionCount }) }
            return counts
        }
    }

    /// Uses `context` for new connections, and `responders`, one for each loop, for new requests. Connections that
    /// are open keep their TLS context.
    public func replace(_ context: TLSServerContext, responders: [any Responder]) {
        precondition(responders.count == listeners.count, "every loop has a responder")
        for (listener, responder) in zip(listeners, responders) {
            listener.loop.schedule {
                listener.value.context = context
                listener.value.responder = responder
            }
        }
    }

    /// Copies of the sockets, for another process that goes on to accept from them: first one of each loop, then the next, so
    /// that each loop there gets one of each address.
    public func copyListeningSockets() async -> ListeningSockets {
        var copies: [[CInt]] = []
        for listener in listeners { copies.append(await listener.loop.run { listener.value.copyListeningSockets() }) }
        let longest = copies.map(\.count).max() ?? 0
        return ListeningSockets(
            takingOwnershipOf: (0..<longest).flatMap { place in copies.compactMap { $0.dropFirst(place).first } })
    }

    /// The addresses in numbers at which connections are accepted: those that ``address`` stands for and the machine has.
    public var listeningAddresses: [SocketAddress] {
        get async { await copyListeningSockets().addresses }
    }

    /// Accepts nothing more, lets requests that are under way finish, and closes what is left after `deadline`.
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
