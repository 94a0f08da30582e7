import HTTPCore
import Postgres
import SalternServer

/// The hourly purge of a server, with its log lines and metrics.
struct RegularPurge: Sendable {
    let database: PostgresClient
    let configuration: ServiceConfiguration
    let clock: DatabaseClock
    let facts: MetricsFacts
    let log: Log

    /// Purges, unless another node is doing so. Without a trusted clock nothing is removed, which counts as a failure.
    func run() async {
        guard clock.isTrusted else {
            facts.purgeFailed()
            return log.write(.error, "not_purged_because_of_clock")
        }
        let purge = Purge(
            database: database, sessions: configuration.sessions, policy: configuration.purge, now: clock.now)
        do {
            guard let report = try await purge.run() else { return }
            facts.purged(report, at: clock.now.unixMicroseconds / 1_000_000)
            let skipped = (name: "skippedAccounts" as StaticString, number: report.skippedAccounts)
            log.write(.info, "purged", numbers: report.rows.map { ($0.kind, $0.count) } + [skipped])
        } catch is CancellationError {
            // The server stops. Removed rows stay removed, and another node or the next start continues.
        } catch let error as PostgresError {
            if Task.isCancelled { return }
            facts.purgeFailed()
            log.write(.warning, "not_purged", ["error": error])
        } catch {
            facts.purgeFailed()
            log.write(.warning, "not_purged")
        }
    }
}

extension Purge.Report {
    /// The numbers of removed rows by kind, for the log, metrics and commands.
    var rows: [(kind: StaticString, count: Int)] {
        [
            ("sessions", sessions), ("tombstones", tombstones), ("contents", contents), ("keyrings", keyrings),
            ("challenges", challenges), ("versions", versions), ("rotations", rotations), ("events", events),
            ("attempts", attempts), ("shares", shares), ("invitations", invitations),
            ("outgoing", outgoing),
        ]
    }
}
