import EventLoop
import HTTPCore
import HTTPServer
import Postgres
import SalternServer
import Synchronization
import TransportSecurity
import WebhookDelivery

/// Composes `saltern serve`: loops, database clients, applications and listeners. Also stops them.
final class RunningServer: Sendable {
    private let runtime: ServerRuntime
    private let installation: Installation
    private let listeners: Listeners
    private let facts: MetricsFacts
    private let log: Log
    /// The most recently read master key.
    private let masterKey: Mutex<MasterKey>

    /// The address for clients.
    var address: SocketAddress { listeners.api.address }

    /// The numeric addresses for clients.
    var listeningAddresses: [SocketAddress] { get async { await listeners.api.listeningAddresses } }

    /// The address of metrics, if they are served.
    var metricsAddress: SocketAddress? { listeners.metrics?.server.address }

    /// Waits for the database, checks the schema, and begins to serve. Takes over from a running server that offers a
    /// handover.
    ///
    /// If a step fails, the started parts are stopped again.
    /// - Parameters:
    ///   - onWaiting: Called every second while the start waits for the database.
    ///   - onTakeover: Called when another server serves instead.
    static func start(
        _ configuration: ServeConfiguration, log: Log, onWaiting: @escaping @Sendable () -> Void = {},
        onTakeover: @escaping @Sendable () -> Void
    ) async throws -> RunningServer {
        let runtime = try await ServerRuntime.start(configuration, log: log)
        do {
            return try await RunningServer(configuration, runtime, log, onWaiting, onTakeover)
        } catch {
            await runtime.stop()
            throw error
        }
    }

    private init(
        _ configuration: ServeConfiguration, _ runtime: ServerRuntime, _ log: Log,
        _ onWaiting: @escaping @Sendable () -> Void,
        _ onTakeover: @escaping @Sendable () -> Void
    ) async throws {
        self.runtime = runtime
        self.log = log
        masterKey = Mutex(configuration.service.masterKey)
        let facts = MetricsFacts(configuration.tls)
        self.facts = facts
        let first = runtime.shares[0]
        // During a takeover the other server keeps the addresses until this one can serve.
        var listener: HTTPServer?
        if configuration.handoverSocket == nil {
            listener = try await Listeners.listenWhileStarting(configuration, runtime, log: log)
        }
        do {
            var isFirst = true
            installation = try await DatabasePatience(log: log, onWaiting: onWaiting).perform {
                if !isFirst, listener == nil, let path = configuration.handoverSocket,
                    try await !InheritedSockets.isOffered(at: path)
                {
                    listener = try await Listeners.listenWhileStarting(configuration, runtime, log: log)
                }
                isFirst = false
                return try await Self.prepareDatabase(configuration, first, runtime.clock, log)
            }
            await Self.reportMissingKeys(configuration.service.masterKey, first, log)
            var inherited: InheritedSockets?
            if listener == nil, let path = configuration.handoverSocket {
                inherited = try await InheritedSockets.claim(from: path)
            }
            let applications = runtime.applications(configuration.service, installation, log)
            listeners = try await Listeners.prepare(
                configuration, runtime, applications, facts, inherited, listener, onTakeover: onTakeover)
            try await listeners.open(inPlaceOf: inherited, log: log)
        } catch {
            await listener?.drain(deadline: .zero)
            throw error
        }
    }

    /// Checks that the database is usable, and reads its installation.
    private static func prepareDatabase(
        _ configuration: ServeConfiguration, _ share: ServerRuntime.Share, _ clock: DatabaseClock, _ log: Log
    ) async throws -> Installation {
        do {
            try await Migrator(configuration: configuration.database, migrations: Schema.migrations, loop: share.loop)
                .requireCompatible()
        } catch {
            guard case .findings = error, try await isRestoring(configuration.database) else { throw error }
            throw PostgresError.unavailable(retryAfter: .seconds(1), because: .unsuitable("\(UnfinishedRestore())"))
        }
        let findings = try await share.loop.run { try await share.database.poolingFindings() }
        if !findings.isEmpty { throw UnsuitablePooling(findings: findings) }
        try await requireSafeDatabase(configuration, share, log)
        try await warn(configuration, share, log)
        return try await share.loop.run {
            try await Installation.load(
                configuration: configuration.service, database: share.database, clock: clock)
        }
    }

    /// Returns true if a restore has yet to complete.
    ///
    /// It uses its own client, because the server's client does not connect to such a database.
    private static func isRestoring(_ database: PostgresConfiguration) async throws -> Bool {
        // A failure of a command would end the start, also if it is transient.
        let found: Result<Bool, PostgresError> = try await DatabaseCommand.with(
            database, from: .databaseURL, needsSchema: false
        ) { client in
            do {
                return .success(try await RestoreMark.isThere(in: client))
            } catch let error as PostgresError {
                return .failure(error)
            }
        }
        return try found.get()
    }

    /// Rejects a database that may lose acknowledged commits, unless the operator allows it.
    private static func requireSafeDatabase(
        _ configuration: ServeConfiguration, _ share: ServerRuntime.Share, _ log: Log
    ) async throws {
        let findings = try await share.loop.run {
            try await share.database.unsafeSettings(
                outlivingPrimary: configuration.failover == .synchronous)
        }
        if findings.isEmpty { return }
        guard configuration.allowsUnsafeDatabase else { throw UnsafeDatabase(settings: findings) }
        for setting in findings {
            log.write(.warning, "database_unsafe", ["error": OperatorText("\(setting)")])
        }
    }

    /// Logs warnings about conditions that do not prevent the start: too few connections, no synchronous standby.
    private static func warn(_ configuration: ServeConfiguration, _ share: ServerRuntime.Share, _ log: Log) async throws
    {
        let needed = configuration.databaseConnectionCount
        for facts in try await share.loop.run({ try await share.database.execute(ReadStartingFacts()) }) {
            if needed > facts.connectionLimit {
                log.write(
                    .warning, "database_connections_short",
                    [
                        "limit": Int(facts.connectionLimit), "needed": needed,
                        "remedy": ServeConfiguration.moreConnections,
                    ])
            }
            if configuration.failover == .synchronous, !facts.waitsForStandbys {
                log.write(.warning, "failover_not_synchronous")
            }
        }
    }

    /// Logs an error if the master key cannot open secrets of the database, most likely because its file is wrong or
    /// old.
    ///
    /// The server can do everything else, so it starts.
    private static func reportMissingKeys(_ masterKey: MasterKey, _ share: ServerRuntime.Share, _ log: Log) async {
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

    /// Serves new connections with another certificate, publishes its pins, and seals with another master key.
    /// - Parameter failures: The files that could not be read again, for metrics.
    func use(_ tls: TLSFiles, _ service: ServiceConfiguration, _ failures: ReloadFailures = ReloadFailures()) {
        var service = service
        service.pins = tls.pins
        masterKey.withLock { $0 = service.masterKey }
        listeners.api.replace(tls.context, responders: runtime.applications(service, installation, log))
        if let metrics = listeners.metrics, !metrics.server.address.isLoopback {
            metrics.server.replace(tls.context, responders: [metrics.responder])
        }
        facts.use(tls)
        facts.reloaded(failures)
    }

    /// Runs all background tasks until it is cancelled. Returns after all of them have ended.
    func work(_ configuration: ServeConfiguration) async {
        let (service, isMeasured) = (configuration.service, configuration.metricsListen != nil)
        let authorities = configuration.destinationAuthorities
        let refusals = RefusalReport(server: listeners.api, metrics: runtime.shares.map(\.metrics), log: log)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.keepDecoysCurrent() }
            group.addTask { await self.watchDatabase() }
            group.addTask { await self.purgeRegularly(service) }
            group.addTask { await self.deliverEvents(authorities: authorities) }
            if isMeasured {
                group.addTask { await self.watchBacklog(service.purge) }
                group.addTask { await self.watchEvents() }
            }
            group.addTask { await refusals.run() }
            group.addTask { await ResidentMemory.keepLow() }
        }
    }

    /// Redraws outdated iteration counts of decoys now and every hour, until it is cancelled.
    private func keepDecoysCurrent() async {
        let share = runtime.shares[0]
        repeat {
            await share.loop.run { [log, clock = runtime.clock] in
                do throws(PostgresError) {
                    try await DecoyParameters.redraw(database: share.database, clock: clock)
                } catch {
                    log.write(.warning, "decoys_not_redrawn", ["error": error])
                }
            }
        } while (try? await Task.sleep(for: .seconds(3_600))) != nil
    }

    /// The interval of database checks, by the loops in rotation.
    private static let watchInterval = Duration.seconds(5)

    /// Checks the clocks, the identity of the database, and rollbacks, until it is cancelled. Logs a failure once.
    private func watchDatabase() async {
        var turn = 0
        var hasTold = false
        while (try? await Task.sleep(for: Self.watchInterval)) != nil {
            let share = runtime.shares[turn % runtime.shares.count]
            turn += 1
            let failure = await share.loop.run { [watch = runtime.watch] () async -> String? in
                do {
                    try await watch.look(share.database)
                    return nil
                } catch {
                    return "\(error)"
                }
            }
            if let failure, !hasTold { log.write(.warning, "database_not_watched", ["error": OperatorText(failure)]) }
            hasTold = failure != nil
        }
    }

    /// Purges every hour, until it is cancelled.
    private func purgeRegularly(_ configuration: ServiceConfiguration) async {
        while (try? await Task.sleep(for: .seconds(3_600))) != nil { await purge(configuration) }
    }

    func purge(_ configuration: ServiceConfiguration) async {
        let share = runtime.shares[0]
        let purge = RegularPurge(
            database: share.database, configuration: configuration, clock: runtime.clock, facts: facts, log: log)
        await share.loop.run { await purge.run() }
    }

    /// Delivers outgoing events until its task is cancelled.
    private func deliverEvents(authorities: [UInt8]?) async {
        guard let client = CurlWebhookClient(authorities: authorities) else {
            return log.write(.error, "events_not_delivered")
        }
        let share = runtime.shares[0]
        await share.loop.run { [self] in
            await EventDelivery(
                runtime.outbox, database: share.database, installation: installation, client: client,
                clock: runtime.clock, masterKey: { [self] in masterKey.withLock { $0 } },
                counters: runtime.deliveries, log: log
            ).run()
        }
        client.stop()
    }

    /// The interval of queries of the purge's backlog.
    private static let backlogInterval = Duration.seconds(300)

    /// Measures the purge's backlog for metrics now and every five minutes, until it is cancelled.
    private func watchBacklog(_ policy: PurgePolicy) async {
        let share = runtime.shares[0]
        repeat {
            let backlog = await share.loop.run { [clock = runtime.clock] in
                try? await PurgeBacklog.read(share.database, policy: policy, now: clock.now)
            }
            if !Task.isCancelled { facts.use(backlog) }
        } while (try? await Task.sleep(for: Self.backlogInterval)) != nil
    }

    /// Reads now and every half minute how many outgoing events wait, for metrics, until it is cancelled.
    private func watchEvents() async {
        let share = runtime.shares[0]
        repeat {
            let events = await share.loop.run { [clock = runtime.clock] in
                try? await EventBacklog.read(share.database, now: clock.now)
            }
            if !Task.isCancelled { facts.use(events) }
        } while (try? await Task.sleep(for: .seconds(30))) != nil
    }

    /// Lets requests finish within `timeout`, waits for the cancelled `work`, and closes everything.
    ///
    /// So no purge continues with a closed pool.
    func stop(timeout: Duration, after work: Task<Void, Never>? = nil) async {
        runtime.outbox.endWaits()
        await listeners.close(timeout: timeout)
        await work?.value
        await runtime.stop()
    }
}
