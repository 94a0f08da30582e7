import CommandLineKit
import HTTPCore
import Postgres
import SalternServer

struct PurgeNow: Command {
    static let words = ["purge"]
    static let summary = "remove expired sessions, tombstones, events and content"
    static let example = "saltern purge"
    static let help = """
          --json           prints the counts as an object, for scripts

        The server does the same every hour, on one node at a time. Connects with
        SALTERN_DATABASE_URL. Set these as for the server: SALTERN_TOMBSTONE_RETENTION
        (90d), SALTERN_EVENT_RETENTION (400d), SALTERN_SESSION_IDLE_TIMEOUT (30d) and
        SALTERN_SESSION_LIFETIME (365d).
        """

    private let asJSON: Bool

    init(_ arguments: inout Arguments) { asJSON = arguments.flag("--json") }

    func run(_ console: Console) async throws {
        var settings = Settings(console.environment)
        let database = settings.serverDatabase()
        let sessions = settings.sessionPolicy()
        let policy = settings.purgePolicy()
        try settings.finish()
        guard let database else { throw CommandFailure("no database is configured") }
        let report = try await DatabaseCommand.with(database, from: .databaseURL) { client in
            let clock = DatabaseClock()
            try await clock.compare(with: client)
            guard clock.isTrusted else {
                throw CommandFailure("the clocks of this machine and of the database differ: nothing was purged")
            }
            var bar = ProgressBar(console, "rows removed")
            let purge = Purge(database: client, sessions: sessions, policy: policy, now: clock.now)
            let report = try await purge.run { bar.show($0) }
            bar.end()
            return report
        }
        guard let report else { throw CommandFailure("another node is purging") }
        if asJSON {
            console.printJSON { writer in
                for (kind, count) in report.rows { writer.member("\(kind)", count) }
                writer.member("skippedAccounts", report.skippedAccounts)
            }
        } else {
            console.print(
                "removed "
                    + [
                        counted(report.sessions, "session"), counted(report.tombstones, "tombstone"),
                        counted(report.contents, "content"), counted(report.keyrings, "kept keyring"),
                        counted(report.challenges, "challenge"), counted(report.versions, "version"),
                        counted(report.rotations, "rotation"),
                        counted(report.shares, "share"), counted(report.invitations, "invitation"),
                        counted(report.events, "event"),
                        counted(report.attempts, "failure"), counted(report.outgoing, "outgoing event"),
                    ].joined(separator: ", "))
            if report.skippedAccounts > 0 {
                console.print(
                    counted(report.skippedAccounts, "account was busy and is", "accounts were busy and are")
                        + " left to the next purge")
            }
        }
    }
}

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
