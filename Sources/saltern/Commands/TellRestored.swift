import CommandLineKit
import SalternServer

struct TellRestored: Command {
    static let words = ["restored"]
    static let summary = "record that the database was restored to an earlier state"
    static let example = "saltern restored --end-sessions"
    static let help = """
          --end-sessions   ends all sessions, also those that ended since the backup
        \(AdminActor.help)

        Run it before the servers start. It moves the revision base: no revision that a
        client has seen is used again, and every device lists everything once. It also
        completes a `saltern restore` that was interrupted. It names the servers that
        are connected.

        Servers detect a restored dump, a recovery to a point in time and the promotion
        of a standby. They cannot detect a copy of the data directory or of the disk,
        nor, with SALTERN_FAILOVER=synchronous, a recovery to a point in time. An
        unnecessary run costs every device one full listing.

        \(DatabaseCommand.ownerHelp)
        """

    private let actor: AdminActor
    private let endsSessions: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        endsSessions = arguments.flag("--end-sessions")
        actor = try AdminActor(&arguments)
    }

    func run(_ console: Console) async throws {
        try await RestoreLock.holding(console) {
            let isRestoring = try await RestoreMark.isThere(console)
            if !isRestoring { try await ServerSessions.tell(console) }
            try await tell(console, mayBeUnused: isRestoring)
        }
    }

    /// Changes the revision base. The caller holds the lock.
    /// - Parameter mayBeUnused: True if the database may be one that no server has used yet, as in some backups.
    func tell(_ console: Console, mayBeUnused: Bool) async throws {
        let name = try actor.actor(console)
        let base = try await DatabaseCommand.asOwner(console) { [actor] database -> Int64? in
            let signature = actor.signature(name, now: try await DatabaseClock.now(of: database))
            do {
                return try await RestoredDatabase(database: database).moveBase(by: signature)
            } catch InstallationError.missing where mayBeUnused {
                return nil
            }
        }
        if let base {
            console.print("revisions continue above \(base)")
            if endsSessions { try await endSessions(by: name, console) }
        } else {
            console.print("no server has used this database yet: it has no revisions and no sessions")
        }
        try await RestoreMark.remove(console)
    }

    private func endSessions(by name: AuditActor, _ console: Console) async throws {
        let interruption = Interruption()
        let wishes = [console.wish, interruption.wish].compactMap(\.self)
        let ended = try await DatabaseCommand.asOwner(console) { [actor] database in
            let signature = actor.signature(name, now: try await DatabaseClock.now(of: database))
            var bar = ProgressBar(console, "sessions ended")
            let ended = try await RestoredDatabase(database: database).endSessions(by: signature) { ended in
                bar.show(ended)
                return !wishes.contains(where: \.isThere)
            }
            bar.end()
            return ended
        }
        console.print("\(counted(ended, "session has", "sessions have")) ended")
        if let wish = wishes.first(where: \.isThere) {
            throw wish.fulfilled("ended by a signal before all sessions had ended")
        }
    }
}
