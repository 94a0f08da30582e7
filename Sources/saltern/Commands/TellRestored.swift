import CommandLineKit
import SalternServer

struct TellRestored: Command {
    static let words = ["restored"]
    static let summary = "tell that the database was restored to a time before"
    static let help = """
          --end-sessions   ends all sessions of all accounts, also those that had ended since the backup
        \(AdminActor.help)

        From then on no revision is given out again that a client has seen, and every device lists everything once. Servers
        notice a restored dump, a recovery to a point in time and the promotion of a standby by themselves; they cannot
        notice a copy of the data folder or of the disk, nor, with SALTERN_FAILOVER=synchronous, a recovery to a point in
        time. Call it before the servers start: what they have given out since the database went back may have been given
        out before, so it says which are connected. To call it once too often costs every device one full listing. It also
        finishes a `saltern restore` that was ended too early.

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

    /// Does it, for who has the lock.
    /// - Parameter mayBeUnused: Whether it is right that no server has ever used the database: a backup may be of such a one.
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
            console.print("revisions go on above \(base)")
            if endsSessions { try await endSessions(by: name, console) }
        } else {
            console.print("no server has used this database yet: there is no revision to go on above, and no session")
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
