import CommandLineKit
import Foundation
import Postgres
import SalternServer

struct RestoreDatabase: Command {
    static let words = ["restore"]
    static let summary = "make roles and database of a backup, also in a new cluster, and tell that time went back"
    static let help = """
        usage: saltern restore FILE [OPTIONS]

          --end-sessions   ends all sessions of all accounts, also those that had ended since the backup
        \(AdminActor.help)

        Makes what is missing: the group saltern_server, the roles and passwords that SALTERN_OWNER_DATABASE_URL and
        SALTERN_DATABASE_URL name, and the database. Restores FILE, which `saltern backup` wrote, in one transaction, with
        the move of the base that keeps revisions from being given out twice; a database that has a schema saltern is left
        as it is, so rename or drop it first. Then migrates, and does what `saltern restored` does. Stop the servers before:
        for sessions of the server's role this waits up to 20 s, and then restores nothing and says which they are. Until
        all is done no server uses the database: when this was ended too early, `saltern migrate up` and `saltern restored
        --end-sessions` do the rest; without --end-sessions all sessions of the backup live on. A FILE of a newer version is
        refused, and so is a second restore at the same time, and a FILE of which a bit is another than when it was written:
        its last line is the SHA-256 of all before it. For one without that line (version 0.9.0 wrote none) there is a
        warning.

        Connects with SALTERN_SUPERUSER_DATABASE_URL for the roles, to any database of the cluster that is there, such as
        postgres. It may be left out when roles and an empty database are there. Then connects with
        SALTERN_OWNER_DATABASE_URL. Each may be given as a file: SALTERN_SUPERUSER_DATABASE_URL_FILE and so on.
        """

    private let file: String
    private let endsSessions: Bool
    private let actor: AdminActor

    init(_ arguments: inout Arguments) throws(UsageError) {
        endsSessions = arguments.flag("--end-sessions")
        actor = try AdminActor(&arguments)
        file = try arguments.word("the file")
    }

    func run(_ console: Console) async throws {
        let interruption = Interruption()
        var console = console
        console.wish = interruption.wish
        var settings = Settings(console.environment)
        let superuser = settings.superuserDatabase()
        let owner = settings.ownerDatabase()
        let server = settings.text("SALTERN_DATABASE_URL") == nil ? nil : settings.serverDatabase()
        try settings.finish()
        guard let owner else { throw CommandFailure("no database is configured") }
        let (backup, version, tables) = try await onOwnThread { [console] in
            let backup = BackupFile(content: try OpenFile(reading: file), console: console)
            let version = try backup.content.version()
            let tables = try backup.requireWhole(file)
            try backup.requireKnownSchema()
            if let superuser {
                try DatabaseRoles(owner: owner, server: server).make(as: superuser.programConnection, console)
            }
            return (backup, version, tables)
        }
        try await RestoreLock.holding(console) {
            try await RestoreMark.make(console)
            do {
                try await ServerSessions.waitUntilGone(console)
                let transaction = RestoreTransaction(
                    backup: backup, version: version, tables: tables, connection: owner.programConnection)
                try await onOwnThread { try transaction.commit() }
            } catch {
                guard await !RestoreMark.removeIfUnused(console) else { throw error }
                throw Self.failure(
                    error,
                    "something may come back still, so the schema saltern_restoring stays and no server uses the database: "
                        + "restore again, or remove that schema when no restore is under way any more")
            }
            do {
                try await finish(console, interruption.wish)
            } catch {
                throw Self.failure(error, "\(UnfinishedRestore())")
            }
        }
        console.print("restored \(tables) tables; next: saltern doctor, and then the servers")
    }

    /// What comes after `pg_restore`. A signal ends it where it can be gone on with.
    private func finish(_ console: Console, _ wish: Interruption.Wish) async throws {
        let migration = Task {
            var none = try Arguments([], OptionNames(of: MigrateUp.self))
            try await MigrateUp(&none).run(console)
        }
        let interruption = Interruption { _ in migration.cancel() }
        if wish.isThere { migration.cancel() }
        let outcome = await migration.result
        withExtendedLifetime(interruption) {}
        if wish.isThere { throw wish.fulfilled("ended by a signal") }
        try outcome.get()
        var words = try Arguments(
            actor.words(console) + (endsSessions ? ["--end-sessions"] : []),
            OptionNames(of: TellRestored.self))
        try await TellRestored(&words).tell(console, mayBeUnused: true)
    }

    /// With what to do next.
    private static func failure(_ error: any Error, _ hint: String) -> CommandFailure {
        let failure = error as? CommandFailure ?? CommandFailure("\(error)")
        return CommandFailure(failure.messages + [hint], status: failure.status, code: failure.code)
    }
}

extension Settings {
    /// The connection of somebody who may make roles: `SALTERN_SUPERUSER_DATABASE_URL`.
    fileprivate mutating func superuserDatabase() -> PostgresConfiguration? {
        guard let text = text("SALTERN_SUPERUSER_DATABASE_URL", orNothing: "none") else { return nil }
        return database(text, "SALTERN_SUPERUSER_DATABASE_URL")
    }
}
