import EventLoop
import Foundation
import HTTPCore
import HTTPServer
import Postgres
import SalternServer
import Synchronization

/// Serves `GET /metrics` on a listener of its own, and nothing else.
struct MetricsResponder: Responder {
    let runtime: ServerRuntime
    let server: HTTPServer
    let budgets: ServerBudgets
    let facts: MetricsFacts

    /// The time limit of the database's reply.
    private static let databasePatience = Duration.seconds(2)

    func admit(_ head: RequestHead, from client: ClientAddress) -> Admission {
        guard head.path == "/metrics" else { return .refuse(Problem.notFound.response()) }
        guard head.method == .get || head.method == .head else {
            return .refuse(Problem.methodNotAllowed(allowed: [.get, .head]).response())
        }
        return .accept(
            RequestPlan(bodyLimit: 0, handlerDeadline: .seconds(10)) { [self] in
                Response(
                    status: .ok, fields: ["Content-Type": PrometheusText.contentType, "Cache-Control": "no-store"],
                    body: .bytes(ZeroizingBuffer(await text())))
            })
    }

    func refusal(_ refusal: Refusal, of request: KnownRequest?, from client: ClientAddress) -> Response {
        refusal.problem.response()
    }

    private func text() async -> [UInt8] {
        var text = PrometheusText()
        text.metric("saltern_build_info", .gauge, "Version of the running program.")
        text.sample("saltern_build_info", labels: ["version": ShowVersion.version], 1)
        text.requests(runtime.shares.map(\.metrics))
        connections(&text)
        text.single(
            "saltern_live_streams", .gauge, "Open streams of changes.", runtime.revisions.streamCount)
        memory(&text)
        let name = "saltern_rate_limited_requests_total"
        text.metric(name, .counter, "Requests rejected by the rate limits of client addresses, by class.")
        for (rateClass, count) in runtime.nodeState.addresses.refused {
            text.sample(name, labels: ["class": rateClass.rawValue], count)
        }
        await database(&text)
        if let difference = runtime.clock.difference {
            text.single(
                "saltern_clock_difference_seconds", .gauge, "Lead of this machine's clock over the database's.",
                difference / .seconds(1))
        }
        text.outgoingEvents(runtime.deliveries, runtime.outbox, facts.events)
        seldom(&text)
        process(&text)
        return text.bytes
    }

    private func connections(_ text: inout PrometheusText) {
        text.single("saltern_connections", .gauge, "Open connections.", server.connectionCount)
        text.single(
            "saltern_connections_limit", .gauge, "Maximum number of connections (SALTERN_MAX_CONNECTIONS).",
            server.connectionLimit)
        let counters = server.statistics
        text.single(
            "saltern_connections_accepted_total", .counter, "Accepted connections.",
            counters.acceptedConnections.load(ordering: .relaxed))
        text.single(
            "saltern_connections_dropped_total", .counter, "Connections closed at once because of a limit.",
            counters.droppedConnections.load(ordering: .relaxed))
        text.single(
            "saltern_connections_dropped_of_address_total", .counter,
            "Connections closed at once because of the limit of one address.",
            counters.droppedOfAddress.load(ordering: .relaxed))
        text.single(
            "saltern_proxy_headers_refused_total", .counter,
            "Connections of proxies closed because they did not begin with a valid PROXY header.",
            counters.refusedProxyHeaders.load(ordering: .relaxed))
        text.single(
            "saltern_forwarded_for_ignored_total", .counter,
            "Requests with X-Forwarded-For from an address that SALTERN_TRUSTED_PROXIES does not name.",
            runtime.shares.reduce(0) { $0 + $1.metrics.ignoredForwards })
        text.single(
            "saltern_tls_handshakes_total", .counter, "Completed TLS handshakes.",
            counters.completedHandshakes.load(ordering: .relaxed))
        text.single(
            "saltern_tls_handshakes_failed_total", .counter, "Failed TLS handshakes.",
            counters.failedHandshakes.load(ordering: .relaxed))
    }

    private func memory(_ text: inout PrometheusText) {
        let parts = [
            ("bodies", budgets.bodies), ("unidentified_bodies", budgets.unidentifiedBodies), ("output", budgets.output),
        ]
        text.metric("saltern_memory_budget_bytes", .gauge, "Memory limit of bodies and replies.")
        for (name, budget) in parts {
            text.sample("saltern_memory_budget_bytes", labels: ["budget": name], budget.total + budget.reserve)
        }
        text.metric("saltern_memory_used_bytes", .gauge, "Memory used by bodies and replies.")
        for (name, budget) in parts { text.sample("saltern_memory_used_bytes", labels: ["budget": name], budget.used) }
    }

    private func database(_ text: inout PrometheusText) async {
        let first = runtime.shares[0]
        var statistics = await first.loop.run { first.database.statistics() }
        for share in runtime.shares.dropFirst() {
            statistics.add(await share.loop.run { share.database.statistics() })
        }
        let state = await first.loop.run { await DatabaseState.read(first.database, within: Self.databasePatience) }
        text.database(statistics, runtime.keys.keyWaits, state)
    }

    private func seldom(_ text: inout PrometheusText) {
        text.single(
            "saltern_certificate_expiry_timestamp_seconds", .gauge, "End of the certificate's validity.",
            facts.certificateExpiry)
        text.single(
            "saltern_certificate_backup_key", .gauge, "1 if there is a backup key.",
            facts.hasBackupKey ? 1 : 0)
        let reload = facts.reload
        text.metric(
            "saltern_reload_failed", .gauge,
            "1 if the last reload (SIGHUP) rejected the file and kept the earlier one.")
        text.sample("saltern_reload_failed", labels: ["file": "certificate"], reload.certificate ? 1 : 0)
        text.sample("saltern_reload_failed", labels: ["file": "master_key"], reload.masterKey ? 1 : 0)
        text.sample("saltern_reload_failed", labels: ["file": "signing_keys"], reload.signingKeys ? 1 : 0)
        let purge = facts.purge
        text.single(
            "saltern_purge_last_success_timestamp_seconds", .gauge,
            "Time of this node's last purge; 0 before the first.",
            purge.lastSuccess)
        text.single("saltern_purge_failures_total", .counter, "Failed purges.", purge.failures)
        text.single(
            "saltern_purge_skipped_accounts", .gauge, "Accounts deferred to the next purge.",
            purge.skippedAccounts)
        text.metric("saltern_purge_rows_total", .counter, "Purged rows.")
        for (kind, count) in purge.rows { text.sample("saltern_purge_rows_total", labels: ["kind": "\(kind)"], count) }
        guard let backlog = facts.backlog?.parts else { return }
        text.metric(
            "saltern_purge_overdue_seconds", .gauge, "Time since the oldest expired row was due for the purge.")
        for part in backlog {
            text.sample("saltern_purge_overdue_seconds", labels: ["kind": part.kind], part.overdue / .seconds(1))
        }
        text.metric("saltern_purge_due_rows", .gauge, "Rows due for the purge, counted up to 1000.")
        for part in backlog { text.sample("saltern_purge_due_rows", labels: ["kind": part.kind], part.rows) }
    }

    private func process(_ text: inout PrometheusText) {
        text.single(
            "saltern_log_lines_dropped_total", .counter,
            "Log lines lost because the reader was too slow or the disk was full.",
            runtime.log.droppedLines)
        var usage = rusage()
        getrusage(CInt(RUSAGE_SELF.rawValue), &usage)
        let seconds = Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        let microseconds = Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
        text.single("process_cpu_seconds_total", .counter, "CPU time used.", seconds + microseconds / 1_000_000)
        if let resident = ResidentMemory.bytes {
            text.single("process_resident_memory_bytes", .gauge, "Resident memory.", resident)
        }
    }
}

/// Rare events for metrics, shared by the server's parts.
final class MetricsFacts: Sendable {
    struct PurgeFacts: Sendable {
        /// The time of this node's last purge, as Unix seconds; 0 before the first.
        var lastSuccess: Int64 = 0
        var failures = 0
        /// Accounts that were locked at the last purge. Their expired rows are left to the next one.
        var skippedAccounts = 0
        var rows = Purge.Report.empty.rows
    }

    private struct State {
        var certificateExpiry: Int64
        var hasBackupKey: Bool
        var purge = PurgeFacts()
        var backlog: PurgeBacklog?
        var events: EventBacklog?
        var reload = ReloadFailures()
    }

    private let state: Mutex<State>

    init(_ tls: TLSFiles) {
        state = Mutex(State(certificateExpiry: tls.notAfter, hasBackupKey: !tls.pins.backup.isEmpty))
    }

    /// Seconds since the epoch.
    var certificateExpiry: Int64 { state.withLock { $0.certificateExpiry } }
    var hasBackupKey: Bool { state.withLock { $0.hasBackupKey } }
    /// The files that the last reload could not read.
    var reload: ReloadFailures { state.withLock { $0.reload } }
    var purge: PurgeFacts { state.withLock { $0.purge } }
    /// The pending work of the purge; nil if the last query failed.
    var backlog: PurgeBacklog? { state.withLock { $0.backlog } }

    /// The outgoing events. Nil if the database did not answer.
    var events: EventBacklog? { state.withLock { $0.events } }

    func use(_ tls: TLSFiles) {
        state.withLock { state in
            state.certificateExpiry = tls.notAfter
            state.hasBackupKey = !tls.pins.backup.isEmpty
        }
    }

    func reloaded(_ failures: ReloadFailures) { state.withLock { $0.reload = failures } }

    func purged(_ report: Purge.Report, at seconds: Int64) {
        state.withLock { state in
            state.purge.lastSuccess = seconds
            state.purge.skippedAccounts = report.skippedAccounts
            for (index, row) in report.rows.enumerated() { state.purge.rows[index].count += row.count }
        }
    }

    func use(_ backlog: PurgeBacklog?) { state.withLock { $0.backlog = backlog } }

    func use(_ events: EventBacklog?) { state.withLock { $0.events = events } }

    func purgeFailed() { state.withLock { $0.purge.failures += 1 } }
}

extension PrometheusText {
    /// Outgoing events: attempts of this node, and the backlog of all nodes.
    fileprivate mutating func outgoingEvents(_ counters: DeliveryCounters, _ outbox: Outbox, _ backlog: EventBacklog?) {
        let attempts = "saltern_event_attempts_total"
        metric(attempts, .counter, "Attempts to deliver outgoing events, by result.")
        for (label, count) in counters.attempts {
            sample(attempts, labels: ["destination": label.destination, "result": label.result], count)
        }
        single(
            "saltern_event_changes_dropped_total", .counter, "Changes of items that were not reported to destinations.",
            outbox.droppedChanges)
        single(
            "saltern_event_sessions_dropped_total", .counter,
            "Events of sessions that were dropped, because too many of their account waited.",
            outbox.droppedSessionEvents)
        guard let parts = backlog?.parts else { return }
        func write(_ name: String, _ help: String, _ value: (EventBacklog.Part) -> Double) {
            metric(name, .gauge, help)
            for part in parts { sample(name, labels: ["destination": part.destination], value(part)) }
        }
        write("saltern_event_backlog", "Outgoing events that wait; 1000 when there are so many or more.") {
            Double($0.waiting)
        }
        write("saltern_event_oldest_seconds", "Age of the oldest outgoing event that waits.") { $0.age / .seconds(1) }
        write("saltern_event_parked", "Outgoing events that were given up; 1000 when there are so many or more.") {
            Double($0.parked)
        }
        write("saltern_event_destination_disabled", "Whether the receiver has answered 410.") { $0.isDisabled ? 1 : 0 }
        let open = counters.openBreakers
        write("saltern_event_breaker_open", "Whether this node attempts the destination only now and then.") {
            open.contains($0.destination) ? 1 : 0
        }
    }
}
