import SalternServer
import Synchronization

/// Rare events for metrics, shared by the server's parts.
final class MetricsFacts: Sendable {
    struct PurgeFacts: Sendable {
        /// The time of this node's last purge, as Unix seconds; 0 before the first.
        var lastSuccess: Int64 = 0
        var failures = 0
        /// Accounts that were locked at the last purge. Their expired rows are left to the next one.
        var skippedAccounts = 0
        var rows: [(kind: String, count: Int)] = Purge.Report.empty.rows
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

extension Purge.Report {
    var rows: [(kind: String, count: Int)] {
        [
            ("sessions", sessions), ("tombstones", tombstones), ("contents", contents), ("keyrings", keyrings),
            ("challenges", challenges), ("versions", versions), ("rotations", rotations), ("events", events),
            ("attempts", attempts), ("shares", shares), ("invitations", invitations),
            ("outgoing", outgoing),
        ]
    }
}
