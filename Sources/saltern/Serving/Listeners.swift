import EventLoop
import HTTPCore
import HTTPServer
import SalternServer

/// By what others reach a server: the listener of the API, that of metrics, and the offer to take over from it.
///
/// First everything is prepared that can fail, and then, in one step, it is opened. A start that waits for the database listens
/// before (``listenWhileStarting(_:_:log:)``), unless it is to take over from another server.
struct Listeners: Sendable {
    let api: HTTPServer
    let metrics: (server: HTTPServer, responder: MetricsResponder)?
    private let offer: LoopBound<HandoverOffer>?

    /// Begins to accept, and answers that the server is alive and not ready, until ``prepare(_:_:_:_:_:_:onTakeover:)`` takes
    /// the listener over.
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

    /// Binds, or takes over what `inherited` has. What was bound is let go of when something fails.
    /// - Parameters:
    ///   - listener: What ``listenWhileStarting(_:_:log:)`` returned, if it was called.
    ///   - onTakeover: Called when another server serves in this one's place.
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

    /// Begins to accept, when the server that `inherited` came from has given way.
    /// - Throws: ``HandoverFailure`` when that one goes on; then these are closed.
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
                // Nobody else serves any more: better a server that cannot be taken over from than none.
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
        // What leaves the machine is encrypted, and whoever reads it knows from whom it is.
        let context = address.isLoopback ? nil : configuration.tls.context
        let metricsServer = try await HTTPServer(
            address: address, context: context, configuration: .metrics,
            inherited: inherited?.metrics.ifListening(at: address),
            loops: [(runtime.metricsLoop, responder)])
        return (metricsServer, responder)
    }

    /// Whoever takes over is listened for on a loop that has little to do.
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
    /// For a few that ask now and then. Whoever only sits there gives way to who comes.
    fileprivate static var metrics: HTTPServerConfiguration {
        var configuration = HTTPServerConfiguration()
        configuration.maximumConnections = 128
        configuration.maximumConnectionsPerAddress = 32
        configuration.replacesOldestIdle = true
        return configuration
    }
}
