import EventLoop
import HTTPCore
import HTTPServer
import Postgres
import SalternServer
import TransportSecurity

/// The composition root of `saltern serve`: loops, database clients, applications and listeners, and their end.
final class RunningServer: Sendable {
    private let backbone: Backbone
    private let installation: Installation
    private let server: HTTPServer
    private let metrics: (server: HTTPServer, responder: MetricsResponder)?
    private let facts: MetricsFacts
    private let log: Log
    private let offer: LoopBound<HandoverOffer>?

    /// Where clients connect.
    var address: SocketAddress { server.address }

    /// Where metrics are read, when they are served at all.
    var metricsAddress: SocketAddress? { metrics?.server.address }

    /// Waits for the database, checks the schema, and begins to serve, in place of the server that does, if there is one
    /// that hands over. What was started is stopped again when something fails.
    /// - Parameter onTakeover: Called when another server serves in this one's place.
    static func start(
        _ configuration: ServeConfiguration, log: Log, onTakeover: @escaping @Sendable () -> Void
    ) async throws -> RunningServer {
        let backbone = try await Backbone.start(configuration, log: log)
        do {
            return try await RunningServer(configuration, backbone, log, onTakeover)
        } catch {
            await backbone.stop()
            throw error
        }
    }

    private init(
        _ configuration: ServeConfiguration, _ backbone: Backbone, _ log: Log,
        _ onTakeover: @escaping @Sendable () -> Void
    ) async throws {
        self.backbone = backbone
        self.log = log
        let facts = MetricsFacts(configuration.tls)
        self.facts = facts
        let first = backbone.shares[0]
        let installation = try await DatabasePatience(log: log).perform {
            try await Self.prepareDatabase(configuration, first, backbone.clock, log)
        }
        self.installation = installation
        await Self.reportMissingKeys(configuration.service.masterKey, first, log)
        var inheritance: Inheritance?
        if let path = configuration.handoverSocket { inheritance = try await Inheritance.claim(from: path) }
        let server = try await HTTPServer(
            address: configuration.listen, context: configuration.tls.context, configuration: configuration.http,
            inherited: inheritance?.api.ifListening(at: configuration.listen),
            loops: zip(
                backbone.shares.map(\.loop), backbone.applications(configuration.service, installation, log)
            ).map { ($0, $1) })
        self.server = server
        do {
            metrics = try await Self.serveMetrics(configuration, backbone, server, facts, inheritance)
            offer = try await Self.offer(configuration, backbone.metricsLoop, server, metrics?.server, onTakeover)
        } catch {
            await server.drain(deadline: .zero)
            throw error
        }
        inheritance?.confirm()
    }

    private static func serveMetrics(
        _ configuration: ServeConfiguration, _ backbone: Backbone, _ server: HTTPServer, _ facts: MetricsFacts,
        _ inheritance: Inheritance?
    ) async throws -> (server: HTTPServer, responder: MetricsResponder)? {
        guard let address = configuration.metricsListen else { return nil }
        let responder = MetricsResponder(
            backbone: backbone, server: server, budgets: configuration.http.budgets, facts: facts)
        // What leaves the machine is encrypted, and whoever reads it knows from whom it is.
        let context = address.isLoopback ? nil : configuration.tls.context
        let metricsServer = try await HTTPServer(
            address: address, context: context, inherited: inheritance?.metrics.ifListening(at: address),
            loops: [(backbone.metricsLoop, responder)])
        return (metricsServer, responder)
    }

    /// Listens for whoever takes over, on a loop that has little to do.
    private static func offer(
        _ configuration: ServeConfiguration, _ loop: EventLoop, _ server: HTTPServer, _ metricsServer: HTTPServer?,
        _ onTakeover: @escaping @Sendable () -> Void
    ) async throws -> LoopBound<HandoverOffer>? {
        guard let path = configuration.handoverSocket else { return nil }
        return try await loop.run {
            let offer = try HandoverOffer(at: path, loop: loop) {
                let none = ListeningSockets(takingOwnershipOf: [])
                return (await server.copyListeningSockets(), await metricsServer?.copyListeningSockets() ?? none)
            } completion: {
                onTakeover()
            }
            return LoopBound(offer, loop: loop)
        }
    }

    /// Checks that the database is one to be used, and reads what belongs to it.
    private static func prepareDatabase(
        _ configuration: ServeConfiguration, _ share: Backbone.Share, _ clock: DatabaseClock, _ log: Log
    ) async throws -> Installation {
        try await Migrator(configuration: configuration.database, migrations: Schema.migrations, loop: share.loop)
            .requireCompatible()
        let findings = try await share.loop.run { try await share.database.poolingFindings() }
        if !findings.isEmpty { throw UnsuitablePooling(findings: findings) }
        try await requireSafeDatabase(configuration, share, log)
        return try await share.loop.run {
            try await Installation.load(
                configuration: configuration.service, database: share.database, clock: clock)
        }
    }

    /// Refuses a database that may lose what it has said to be committed, unless the operator has asked for that.
    private static func requireSafeDatabase(
        _ configuration: ServeConfiguration, _ share: Backbone.Share, _ log: Log
    ) async throws {
        let findings = try await share.loop.run { try await share.database.unsafeSettings() }
        if findings.isEmpty { return }
        guard configuration.allowsUnsafeDatabase else { throw UnsafeDatabase(settings: findings) }
        for setting in findings {
            log.write(.warning, "database_unsafe", ["error": OperatorText("\(setting)")])
        }
    }

    /// Tells the operator when the database has secrets that the master key does not open: a wrong or an old file, most
    /// likely. The server can do everything else, so it starts.
    private static func reportMissingKeys(_ masterKey: MasterKey, _ share: Backbone.Share, _ log: Log) async {
        await share.loop.run {
            do throws(PostgresError) {
                let counts = try await SealedSecrets(database: share.database).counts()
                for (id, count) in counts where !masterKey.ids.contains(id) {
                    log.write(.error, "master_key_missing", ["key": id, "secrets": Int(count)])
                }
            } catch {
                log.write(.warning, "master_key_not_checked", ["error": error])
            }
        }
    }

    /// Serves new connections with another certificate, tells clients its pins, and seals with another master key.
    func use(_ tls: TLSFiles, _ service: ServiceConfiguration) {
        var service = service
        service.pins = tls.pins
        server.replace(tls.context, responders: backbone.applications(service, installation, log))
        if let metrics, !metrics.server.address.isLoopback {
            metrics.server.replace(tls.context, responders: [metrics.responder])
        }
        facts.use(tls)
    }

    /// Draws the decoys' iteration counts anew now and every hour, if they are old, until it is cancelled.
    func keepDecoysCurrent() async {
        let share = backbone.shares[0]
        repeat {
            await share.loop.run { [log, clock = backbone.clock] in
                do throws(PostgresError) {
                    try await DecoyParameters.redraw(database: share.database, clock: clock)
                } catch {
                    log.write(.warning, "decoys_not_redrawn", ["error": error])
                }
            }
        } while (try? await Task.sleep(for: .seconds(3_600))) != nil
    }

    /// Compares the clocks every minute, and looks whether time went back in the database, until it is cancelled.
    func watchDatabase() async {
        let share = backbone.shares[0]
        while (try? await Task.sleep(for: .seconds(60))) != nil {
            await share.loop.run { [log, watch = backbone.watch] in
                do {
                    try await watch.look(share.database)
                } catch let error as PostgresError {
                    log.write(.warning, "database_not_watched", ["error": error])
                } catch {
                    log.write(.warning, "database_not_watched")
                }
            }
        }
    }

    /// Purges every hour, unless another node is at it or nobody knows what time it is, until it is cancelled.
    func purgeRegularly(_ configuration: ServiceConfiguration) async {
        let share = backbone.shares[0]
        while (try? await Task.sleep(for: .seconds(3_600))) != nil {
            await share.loop.run { [log, facts, clock = backbone.clock] in
                guard clock.isTrusted else { return log.write(.error, "not_purged_because_of_clock") }
                let purge = Purge(
                    database: share.database, sessions: configuration.sessions, policy: configuration.purge,
                    now: clock.now)
                do {
                    guard let report = try await purge.run() else { return }
                    facts.purged(report, at: clock.now.unixMicroseconds / 1_000_000)
                    log.write(
                        .info, "purged",
                        [
                            "sessions": report.sessions, "tombstones": report.tombstones, "contents": report.contents,
                            "rotations": report.rotations, "shares": report.shares, "events": report.events,
                            "attempts": report.attempts, "skippedAccounts": report.skippedAccounts,
                        ])
                } catch let error as PostgresError {
                    facts.purgeFailed()
                    log.write(.warning, "not_purged", ["error": error])
                } catch {
                    facts.purgeFailed()
                    log.write(.warning, "not_purged")
                }
            }
        }
    }

    /// Lets requests finish within `timeout`, then closes everything.
    func stop(timeout: Duration) async {
        if let offer { await offer.loop.run { offer.value.end() } }
        await server.drain(deadline: timeout)
        await metrics?.server.drain(deadline: .seconds(1))
        await backbone.stop()
    }
}
