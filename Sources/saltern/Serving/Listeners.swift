import EventLoop
import HTTPCore
import HTTPServer
import SalternServer

/// A server's listeners for the API and metrics, and its offer of a handover.
///
/// All steps that can fail are prepared first, and then opened in one step. A start that waits for the database listens
/// earlier (``listenWhileStarting(_:_:log:)``), unless it takes over from another server.
struct Listeners: Sendable {
    let api: HTTPServer
    let metrics: (server: HTTPServer, responder: MetricsResponder)?
    private let offer: LoopBound<HandoverOffer>?

    /// Begins to accept connections, and replies that the server is alive and not ready.
    ///
    /// ``prepare(_:_:_:_:_:_:onTakeover:)`` then takes over the listener.
    static func listenWhileStarting(
        _ configuration: ServeConfiguration, _ runtime: ServerRuntime, log: Log
    ) async throws -> HTTPServer {
        let api = try await listen(
            configuration, runtime,
            runtime.shares.map {
                StartingApplication(configuration: configuration.service, log: log, metrics: $0.metrics)
            }, nil)
        await api.startAccepting()
        return api
    }

    private static func listen(
        _ configuration: ServeConfiguration, _ runtime: ServerRuntime, _ responders: [any Responder],
        _ inherited: InheritedSockets?
    ) async throws -> HTTPServer {
        try await HTTPServer(
            address: configuration.listen, context: configuration.tls.context, configuration: configuration.http,
            inherited: inherited?.api.ifListening(at: configuration.listen),
            loops: zip(runtime.shares.map(\.loop), responders).map { ($0, $1) })
    }

    /// Binds the addresses, or uses the sockets of `inherited`. Closes them when a step fails.
    /// - Parameters:
    ///   - listener: The result of ``listenWhileStarting(_:_:log:)``, if it was called.
    ///   - onTakeover: Called when another server serves instead.
    static func prepare(
        _ configuration: ServeConfiguration, _ runtime: ServerRuntime, _ applications: [any Responder],
        _ facts: MetricsFacts, _ inherited: InheritedSockets?, _ listener: HTTPServer?,
        onTakeover: @escaping @Sendable () -> Void
    ) async throws -> Listeners {
        let api =
            if let listener { listener } else {
                try await listen(configuration, runtime, applications, inherited)
            }
        var metrics: (server: HTTPServer, responder: MetricsResponder)?
        do {
            metrics = try await prepareMetrics(configuration, runtime, api, facts, inherited)
            let offer = try await prepareOffer(
                configuration, runtime.metricsLoop, api, metrics?.server, onTakeover)
            if listener != nil { api.replace(configuration.tls.context, responders: applications) }
            return Listeners(api: api, metrics: metrics, offer: offer)
        } catch {
            await metrics?.server.drain(deadline: .zero)
            await api.drain(deadline: .zero)
            throw error
        }
    }

    /// Begins to accept once the server behind `inherited` has given way.
    /// - Throws: ``HandoverFailure`` when that server continues. The listeners are closed then.
    func open(inPlaceOf inherited: InheritedSockets?, log: Log) async throws {
        do {
            try await inherited?.takePlace()
        } catch {
            await close(timeout: .zero)
            throw error
        }
        await api.startAccepting()
        await metrics?.server.startAccepting()
        await offer?.loop.run { [offer] in
            do {
                try offer?.value.open()
            } catch {
                // The other server has stopped: running without an offer is better than not running.
                log.write(.error, "handover_not_offered", ["error": OperatorText("\(error)")])
            }
        }
    }

    /// Lets requests finish within `timeout`, then closes everything.
    func close(timeout: Duration) async {
        await offer?.loop.run { [offer] in offer?.value.end() }
        await api.drain(deadline: timeout)
        await metrics?.server.drain(deadline: min(timeout, .seconds(1)))
    }

    private static func prepareMetrics(
        _ configuration: ServeConfiguration, _ runtime: ServerRuntime, _ server: HTTPServer, _ facts: MetricsFacts,
        _ inherited: InheritedSockets?
    ) async throws -> (server: HTTPServer, responder: MetricsResponder)? {
        guard let address = configuration.metricsListen else { return nil }
        let responder = MetricsResponder(
            runtime: runtime, server: server, budgets: configuration.http.budgets, facts: facts)
        // Data that leaves the machine is encrypted, and authenticated for its reader.
        let context = address.isLoopback ? nil : configuration.tls.context
        let metricsServer = try await HTTPServer(
            address: address, context: context, configuration: .metrics,
            inherited: inherited?.metrics.ifListening(at: address),
            loops: [(runtime.metricsLoop, responder)])
        return (metricsServer, responder)
    }

    /// Makes the offer on a loop with little load.
    private static func prepareOffer(
        _ configuration: ServeConfiguration, _ loop: EventLoop, _ api: HTTPServer, _ metrics: HTTPServer?,
        _ onTakeover: @escaping @Sendable () -> Void
    ) async throws -> LoopBound<HandoverOffer>? {
        guard let path = configuration.handoverSocket else { return nil }
        return try await loop.run {
            let offer = try HandoverOffer(at: path, loop: loop) {
                let none = ListeningSockets(takingOwnershipOf: [])
                return (await api.copyListeningSockets(), await metrics?.copyListeningSockets() ?? none)
            } completion: {
                onTakeover()
            }
            return LoopBound(offer, loop: loop)
        }
    }
}

extension HTTPServerConfiguration {
    /// Settings for a few occasional clients. A new connection replaces the oldest idle one.
    fileprivate static var metrics: HTTPServerConfiguration {
        var configuration = HTTPServerConfiguration()
        configuration.maximumConnections = 128
        configuration.maximumConnectionsPerAddress = 32
        configuration.replacesOldestIdle = true
        return configuration
    }
}
