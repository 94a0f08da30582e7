import EventLoop
import HTTPCore
import Postgres
import SalternServer

/// The event loops of a server, each with its own database client and counters.
struct ServerRuntime: Sendable {
    /// The parts of one event loop.
    struct Share: Sendable {
        let loop: EventLoop
        let database: PostgresClient
        let metrics: RequestMetrics
    }

    /// One for each loop that serves clients; at least one.
    let shares: [Share]
    let keys: RequestKeys
    /// The loop of the metrics listener, so that a scrape never waits for requests.
    let metricsLoop: EventLoop
    /// Notifies the streams of all loops of changes. Its task runs on the first loop.
    let revisions: RevisionWatcher
    let watching: Task<Void, Never>
    /// The protection against attackers, for all loops.
    let nodeState: NodeState
    /// The database's time, and the watch over it and over rollbacks.
    let clock: DatabaseClock
    let watch: DatabaseWatch
    let log: Log
    /// The outgoing events of all loops.
    let outbox = Outbox()
    let deliveries = DeliveryCounters()

    /// Starts the loops. Their clients begin to connect.
    static func start(_ configuration: ServeConfiguration, log: Log) async throws(EventLoopError) -> ServerRuntime {
        var loops: [EventLoop] = []
        do throws(EventLoopError) {
            for index in 0...configuration.loopCount {
                let loop = try EventLoop(name: index < configuration.loopCount ? "loop-\(index)" : "metrics")
                try loop.start()
                loops.append(loop)
            }
        } catch {
            for loop in loops { loop.stop() }
            throw error
        }
        let metricsLoop = loops.removeLast()
        let clock = DatabaseClock()
        let epoch = ConnectionEpoch()
        let watch = DatabaseWatch(clock: clock, failover: configuration.failover, epoch: epoch, log: log)
        var settings = configuration.database
        settings.onConnected = watch.welcome
        var shares: [Share] = []
        let report = DatabaseReport(log: log)
        settings.observer = { report.take($0) }
        let keys = RequestKeys()
        for loop in loops {
            let database = await loop.run { [settings] in
                PostgresClient(configuration: settings, loop: loop, keys: keys, epoch: epoch)
            }
            shares.append(Share(loop: loop, database: database, metrics: RequestMetrics()))
        }
        let revisions = RevisionWatcher(sessions: configuration.service.sessions)
        let first = shares[0]
        let watching = Task(executorPreference: first.loop) {
            await revisions.run(database: first.database, clock: clock, log: log)
        }
        return ServerRuntime(
            shares: shares, keys: keys, metricsLoop: metricsLoop, revisions: revisions, watching: watching,
            nodeState: NodeState(configuration.service.rateLimits), clock: clock, watch: watch, log: log)
    }

    /// Makes one application for each loop.
    func applications(
        _ configuration: ServiceConfiguration, _ installation: Installation, _ log: Log
    ) -> [any Responder] {
        shares.map { share in
            Application(
                configuration: configuration, installation: installation, database: share.database,
                revisions: revisions, nodeState: nodeState, log: log, metrics: share.metrics, clock: clock,
                outbox: outbox, pace: Pace { [loop = share.loop] in await loop.giveWay() })
        }
    }

    /// Closes the database connections and ends the loops.
    func stop() async {
        watching.cancel()
        await watching.value
        await nodeState.checks.finish()
        for share in shares {
            await share.loop.run { await share.database.shutdown() }
            share.loop.stop()
        }
        metricsLoop.stop()
    }
}
