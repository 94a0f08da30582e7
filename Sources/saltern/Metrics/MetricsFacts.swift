import SalternServer
import Synchronization

/// What metrics tell of things that happen seldom. Shared by the server's parts.
final class MetricsFacts: Sendable {
    struct PurgeFacts: Sendable {
        /// When this node last purged, as a Unix time in seconds; 0 before.
        var lastSuccess: Int64 = 0
        var failures = 0
        /// Accounts that somebody held at the last purge: what is due there is left to the next.
        var skippedAccounts = 0
        var rows: [(kind: String, count: Int)] = Purge.Report.empty.rows
    }

    private struct State {
        var certificateExpiry: Int64
        var hasBackupKey: Bool
        var purge = PurgeFacts()
        var backlog: PurgeBacklog?
        var reload = ReloadFailures()
    }

    private let state: Mutex<State>

    init(_ tls: TLSFiles) {
        state = Mutex(State(certificateExpiry: tls.notAfter, hasBackupKey: !tls.pins.backup.isEmpty))
    }

    /// Seconds since the epoch.
    var certificateExpiry: Int64 { state.withLock { $0.certificateExpiry } }
    var hasBackupKey: Bool { state.withLock { $0.hasBackupKey } }
    /// What the last reload could not read.
    var reload: ReloadFailures { state.withLock { $0.reload } }
    var purge: PurgeFacts { state.withLock { $0.purge } }
    /// What is to be purged; nil when the database did not say so when it was asked last.
    var backlog: PurgeBacklog? { state.withLock { $0.backlog } }

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

    func purgeFailed() { state.withLock { $0.purge.failures += 1 } }
}

extension Purge.Report {
    /// Removed rows by kind.
    var rows: [(kind: String, count: Int)] {
        [
            ("sessions", sessions), ("tombstones", tombstones), ("contents", contents), ("keyrings", keyrings),
            ("versions", versions), ("rotations", rotations), ("events", events), ("attempts", attempts),
            ("shares", shares),
        ]
    }
}
