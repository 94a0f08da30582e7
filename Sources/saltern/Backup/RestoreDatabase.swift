import CommandLineKit
import Foundation
import Postgres
import SalternServer

struct RestoreDatabase: Command {
    static let words = ["restore"]
    static let summary = "restore a backup and record the rollback"
    static let usage = ["FILE [OPTIONS]"]
    static let example = "saltern restore saltern-2026-11-29.backup --end-sessions"
    static let help = """
          --end-sessions   ends all sessions, also those that ended since the backup
        \(AdminActor.help)

        Stop the servers first. The command waits up to 20 s for sessions of the
        server's role, and then fails without a change and lists them.

        Creates the group saltern_server, the roles of SALTERN_OWNER_DATABASE_URL and
        SALTERN_DATABASE_URL with their passwords, and the database, where missing.
        Restores FILE in one transaction, moves the revision base, migrates, and does
        what `saltern restored` does. Rejects a database that has a schema saltern:
        rename or drop it first. Also rejects a damaged FILE, a FILE of a newer
        version, and a second restore at the same time. A file of version 0.9.0 has no
        checksum, and gives a warning.

        No server uses the database until everything is done. After an interruption,
        run `saltern migrate up` and `saltern restored --end-sessions`. Without
        --end-sessions, all sessions of the backup are live again.

        Connects with SALTERN_SUPERUSER_DATABASE_URL to create the roles, to any
        existing database, such as postgres. It can be omitted where roles and an empty
        database exist. Then connects with SALTERN_OWNER_DATABASE_URL.
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
        let server = settings.text(.databaseURL) == nil ? nil : settings.serverDatabase()
        try settings.finish()
        guard let owner else { throw CommandFailure("no database is configured") }
        let connection = try owner.programConnection
        let (backup, version, tables) = try await onOwnThread { [console] in
            let backup = BackupFile(content: try OpenFile(reading: file), console: console)
            let version = try backup.content.version()
            let tables = try backup.requireWhole(file)
            try backup.requireKnownSchema()
            return (backup, version, tables)
        }
        if let superuser {
            try await DatabaseIdentity.requireCluster(of: owner, and: server, superuser: superuser, console)
            try await onOwnThread { [console] in
                try DatabaseRoles(owner: owner, server: server).make(as: superuser.programConnection, console)
            }
        }
        try await RestoreLock.holding(console) {
            try await RestoreMark.make(console)
            do {
                try await ServerSessions.waitUntilGone(console)
                let transaction = RestoreTransaction(
                    backup: backup, version: version, tables: tables, connection: connection)
                try await onOwnThread { try transaction.commit() }
            } catch {
                guard await !RestoreMark.removeIfUnused(console) else { throw error }
                throw Self.failure(
                    error,
                    "the restore may still complete, so the schema saltern_restoring stays and no server uses the database: "
                        + "restore again, or remove that schema when no restore is running")
            }
            do {
                try await finish(console, interruption.wish)
            } catch {
                throw Self.failure(error, "\(UnfinishedRestore())")
            }
        }
        console.print("restored \(tables) tables; next: saltern doctor, and then the servers")
    }

    /// Migrates after `pg_restore`. A signal ends it at a point from which it can continue later.
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

    /// Adds the next step for the operator.
    private static func failure(_ error: any Error, _ hint: String) -> CommandFailure {
        let failure = error as? CommandFailure ?? CommandFailure("\(error)")
        return CommandFailure(failure.messages + [hint], status: failure.status, code: failure.code)
    }
}

extension Settings {
    /// Returns the connection of a role that can create roles: `SALTERN_SUPERUSER_DATABASE_URL`.
    fileprivate mutating func superuserDatabase() -> PostgresConfiguration? {
        guard let text = text(.superuserDatabaseURL, orNothing: "none") else { return nil }
        return database(text, .superuserDatabaseURL)
    }
}

/// The roles and the database that an installation needs before a migration or restore.
struct DatabaseRoles {
    let owner: PostgresConfiguration
    let server: PostgresConfiguration?

    /// Creates missing ones. Existing ones keep their properties and passwords.
    func make(as superuser: PostgresConfiguration.ProgramConnection, _ console: Console) throws {
        guard let ownerName = owner.user, let database = owner.databaseName else {
            throw CommandFailure("\(Setting.ownerDatabaseURL) names no role: postgresql://ROLE@…")
        }
        let names = [
            "SALTERN_ROLE_OWNER": ownerName, "SALTERN_ROLE_OWNER_PASSWORD": owner.password ?? "",
            "SALTERN_ROLE_SERVER": server?.user ?? ownerName,
            "SALTERN_ROLE_SERVER_PASSWORD": server?.password ?? "",
            "SALTERN_ROLE_DATABASE": database,
        ]
        let program = DatabaseProgram("psql", console, password: superuser.password, environment: names)
        do {
            try program.run(
                ["--no-psqlrc", "--quiet", "--no-password", "--set", "ON_ERROR_STOP=1", "--dbname", superuser.string],
                input: PostgresConfiguration.sessionScript + "\n" + Self.script)
        } catch let failure as CommandFailure where failure.code == "failed" {
            throw CommandFailure(failure.messages.map { "\(Setting.superuserDatabaseURL): \($0)" })
        }
    }

    /// Keeps passwords out of the server's log. `\gexec` executes each row, so only missing objects have one.
    private static let script = #"""
        SET log_statement = 'none';
        SET log_min_duration_statement = -1;
        SET log_min_error_statement = 'panic';
        \getenv owner SALTERN_ROLE_OWNER
        \getenv owner_password SALTERN_ROLE_OWNER_PASSWORD
        \getenv server SALTERN_ROLE_SERVER
        \getenv server_password SALTERN_ROLE_SERVER_PASSWORD
        \getenv database SALTERN_ROLE_DATABASE
        SELECT 'CREATE ROLE saltern_server NOLOGIN'
            WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'saltern_server')
        \gexec
        SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', :'owner', nullif(:'owner_password', ''))
            WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'owner')
        \gexec
        SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', :'server', nullif(:'server_password', ''))
            WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'server')
        \gexec
        SELECT format('GRANT saltern_server TO %I', :'server') WHERE :'server' <> :'owner'
        \gexec
        SELECT format('CREATE DATABASE %I OWNER %I ENCODING %L TEMPLATE template0', :'database', :'owner', 'UTF8')
            WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'database')
        \gexec
        REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
        GRANT CONNECT ON DATABASE :"database" TO saltern_server;
        GRANT CONNECT, CREATE, TEMPORARY ON DATABASE :"database" TO :"owner";
        """#
}

/// The one transaction that restores a backup: its rows, and the change of the revision base.
///
/// So no server ever sees the rows with their earlier base, even one that missed every other safeguard.
///
/// `pg_restore` would commit by itself. So it writes SQL for `psql`, which receives the commit after executing all of
/// it. If the restore is killed earlier, nothing is committed. The commit comes through a separate descriptor: a
/// damaged backup may end within a string, and `psql` would take later text as part of that.
struct RestoreTransaction {
    let backup: BackupFile
    /// The file's version before its digest was checked.
    let version: OpenFile.Version
    let tables: Int
    let connection: PostgresConfiguration.ProgramConnection

    private var console: Console { backup.console }

    /// The line that `psql` prints when only the commit is left.
    private static let completion = "everything is restored except for the commit"

    /// Restores all or nothing. The restoring role becomes the owner, whatever the owner's name in the backup.
    func commit() throws {
        let (script, orders, answers) = (Pipe.notInherited(), Pipe.notInherited(), Pipe.notInherited())
        let complaints = try OpenFile(contents: "")
        let program = DatabaseProgram("psql", console, password: connection.password)
        let child = try program.start(
            [
                "--dbname", connection.string, "--no-password", "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1",
                "--set", "VERBOSITY=verbose", "--file", "-", "--file", "/dev/fd/3",
            ],
            ChildProcess.Streams(
                input: script.fileHandleForReading.fileDescriptor,
                output: answers.fileHandleForWriting.fileDescriptor, error: complaints.descriptor,
                other: orders.fileHandleForReading.fileDescriptor))
        // SIGINT cancels the current statement, which would continue after SIGTERM.
        let interruption = program.endedBySignals(child, by: SIGINT)
        for end in [script.fileHandleForReading, orders.fileHandleForReading, answers.fileHandleForWriting] {
            try end.close()
        }
        let writing = Result {
            try write(to: script.fileHandleForWriting)
            try order(by: orders.fileHandleForWriting, answers: answers.fileHandleForReading)
        }
        try? script.fileHandleForWriting.close()
        try orders.fileHandleForWriting.close()
        let status = child.wait()
        guard status != 0 else { return try writing.get() }
        for wish in [console.wish, interruption.wish].compactMap(\.self) where wish.isThere {
            throw wish.fulfilled("ended by a signal")
        }
        // The pipe had no reader any more. The reason is in psql's messages.
        let said = try complaints.contents().split(separator: "\n").map(String.init)
        // The server's messages may be translated. The code (duplicate_schema) is not.
        guard said.contains(where: { $0.contains(" 42P06: ") }) else {
            // Its other lines quote its input.
            let reasons = said.filter { $0.contains("ERROR:") || $0.contains("FATAL:") || $0.hasPrefix("psql:") }
            throw program.failure(status, reasons.isEmpty ? said : reasons)
        }
        throw CommandFailure("the database has a schema saltern already: nothing was changed; rename or drop it")
    }

    /// Writes everything except the commit.
    private func write(to script: FileHandle) throws {
        try script.write(contentsOf: Data("\(PostgresConfiguration.sessionScript)\nBEGIN;\n".utf8))
        var bar = ProgressBar(console, "tables")
        var done = 0
        defer { bar.end() }
        try DatabaseProgram("pg_restore", console).run(
            ["--file", "-", "--no-owner", "--exit-on-error", "--verbose"], input: backup.content,
            output: OpenFile(duplicating: script)
        ) { bar.follow($0, &done, of: tables) }
        try script.write(contentsOf: Data("\(RestoredDatabase.script)\n".utf8))
        try script.close()
        bar.show(tables, of: tables, note: "done")
    }

    private func order(by orders: FileHandle, answers: FileHandle) throws {
        try orders.write(contentsOf: Data("\\echo \(Self.completion)\n".utf8))
        guard DatabaseProgram.Lines(of: answers).contains(Self.completion) else {
            throw CommandFailure("psql ended before the restore was complete")
        }
        guard try backup.content.version() == version else {
            throw CommandFailure("nothing was restored: the backup changed while it was read")
        }
        try orders.write(contentsOf: Data("COMMIT;\n".utf8))
    }
}
