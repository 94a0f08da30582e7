import CPlatform
import CommandLineKit
import Foundation
import Postgres
import SalternServer

struct BackUpDatabase: Command {
    static let words = ["backup"]
    static let summary = "back up the database to a file and verify it"
    static let usage = ["FILE|DIR [OPTIONS]"]
    static let example = "saltern backup /var/backups/saltern"
    static let help = """
        \(AdminActor.help)

        Writes one consistent snapshot with pg_dump while the servers run. FILE must
        not exist. In a directory DIR, the file is named saltern-DATE-TIME.backup.
        Only its owner can read it.

        The file gets its name after it was read back and `saltern restore` would
        accept it. A backup that this program could not restore is kept, with exit
        status 1. The last line is the SHA-256 of everything before it.

        The backup is as sensitive as the database. It does not contain certificate,
        keys or master key: store these separately. pg_dump must be at least as new as
        the PostgreSQL server. A cluster is rejected: no file holds one snapshot of it.
        Each backup adds a row to the audit log, which `saltern doctor` checks.

        \(DatabaseCommand.ownerHelp)
        """

    private let destination: String
    private let actor: AdminActor

    init(_ arguments: inout Arguments) throws(UsageError) {
        actor = try AdminActor(&arguments)
        destination = try arguments.word("the file or folder")
    }

    func run(_ console: Console) async throws {
        let interruption = Interruption()
        var console = console
        console.wish = interruption.wish
        var settings = Settings(console.environment)
        let database = settings.ownerDatabase()
        try settings.finish()
        guard let database else { throw CommandFailure("no database is configured") }
        let connection = try database.programConnection
        let (tables, now, server) = try await DatabaseCommand.asOwner(console, needsSchema: false) { client in
            let tables = try await client.execute(CountTables()).first ?? 0
            guard tables > 0 else { throw CommandFailure("the database has no schema saltern: nothing to back up") }
            // pg_dump would read each node at a different time.
            if client.isDistributed, try await client.execute(AreTablesDistributed()) == [true] {
                throw CommandFailure(
                    "nothing was written: the database is distributed, and one file cannot contain a consistent snapshot of a "
                        + "cluster; back up every node: see \"Backups of a cluster\" in the handbook")
            }
            do {
                let version = try await client.execute(ReadServerVersion()).first ?? 0
                return (tables, try await DatabaseClock.now(of: client), version)
            } catch let error as PostgresError where error.isAboutSchema {
                throw CommandFailure(
                    "nothing was written: the database has \(tables) tables in the schema saltern, which is incomplete "
                        + "(\(error)): `saltern migrate verify` lists the missing migrations. After an unfinished restore, restore "
                        + "again; after an unfinished `saltern migrate up`, run it again")
            }
        }
        let program = try await DumpProgram.majorVersion(console)
        if let obstacle = DumpProgram.obstacle(program: program, server: server) {
            throw CommandFailure("nothing was written: \(obstacle)", status: 1, code: "program_too_old")
        }
        let file = try path(at: now)
        guard !FileManager.default.fileExists(atPath: file) else { throw CommandFailure("\(file) exists already") }
        try await onOwnThread { [console] in
            try write(to: file, from: connection, Int(tables), console)
        }
        let size = try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int ?? 0
        console.print("\(file): \(tables) tables, \(size) bytes, read back")
        await record(size, console)
    }

    /// Records the backup in the audit log. The backup is complete even without the record.
    private func record(_ size: Int, _ console: Console) async {
        do {
            try await DatabaseCommand.asOwner(console, needsSchema: false) { [actor] client in
                let signature = actor.signature(try actor.actor(console), now: try await DatabaseClock.now(of: client))
                try await BackupRecords(database: client).record(size: size, by: signature)
            }
        } catch {
            let reason = (error as? CommandFailure)?.messages.joined(separator: "; ") ?? "\(error)"
            console.notice(
                "the backup is complete, but the audit log does not record it: \(reason)", code: "backup_not_recorded")
        }
    }

    private func path(at now: Timestamp) throws(CommandFailure) -> String {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: destination, isDirectory: &isFolder), isFolder.boolValue else {
            if destination.hasSuffix("/") { throw CommandFailure("there is no folder \(destination)") }
            return destination
        }
        let moment = now.shown.filter { $0 != ":" && $0 != "-" }
        return URL(fileURLWithPath: destination).appendingPathComponent("saltern-\(moment).backup").path
    }

    /// Writes the backup, which gets its name only when it is complete.
    ///
    /// A backup that this program cannot restore is kept, with exit status 1. It may be the only one of that night, and
    /// a newer program restores it.
    private func write(
        to file: String, from connection: PostgresConfiguration.ProgramConnection, _ tables: Int, _ console: Console
    ) throws {
        let unfinished = try UnfinishedFile(file)
        var bar = ProgressBar(console, "tables")
        var done = 0
        let dump = DatabaseProgram("pg_dump", console, password: connection.password)
        try dump.run(
            [
                "--dbname", connection.string, "--no-password", "--format", "custom", "--schema", "saltern",
                "--encoding", "UTF8", "--verbose",
            ], input: OpenFile(contents: ""), output: unfinished.content
        ) { bar.follow($0, &done, of: tables) }
        bar.show(tables, of: tables, note: "reading it back")
        bar.end()
        try BackupDigest.append(to: unfinished.content, console)
        let backup = BackupFile(content: unfinished.content, console: console)
        try backup.check(tables: tables)
        let obstacles = try backup.obstacles()
        try unfinished.keep()
        guard obstacles.isEmpty else {
            throw CommandFailure(
                obstacles.map { "\(file) is written, but this program would not restore it: \($0)" }, status: 1,
                code: "backup_not_restorable")
        }
    }
}

/// Returns `server_version_num`: 150004 for 15.4.
private struct ReadServerVersion: Statement {
    typealias Row = Int32

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT pg_catalog.current_setting('server_version_num')::int"
}

/// Returns the number of the schema's tables.
private struct CountTables: Statement {
    typealias Row = Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'saltern' AND c.relkind = 'r'
        """
}

/// Returns true if the schema is distributed over a cluster. Used only where Citus is installed.
private struct AreTablesDistributed: Statement {
    typealias Row = Bool

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT EXISTS (
            SELECT FROM pg_catalog.pg_dist_partition p JOIN pg_catalog.pg_class c ON c.oid = p.logicalrelid
            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'saltern')
        """
}

/// A file that gets its name when it is complete.
///
/// Until then it has none, and the system removes it when its process ends. On file systems without such files it has a
/// unique temporary name.
final class UnfinishedFile {
    let content: OpenFile
    private let file: String
    /// The temporary name, if any.
    private var unfinished: String?

    /// - Parameters:
    ///   - file: The final name, in the same folder.
    ///   - hasName: True to use a temporary name even where it is not needed.
    /// - Throws: ``CommandFailure`` when the file cannot be written there.
    init(_ file: String, hasName: Bool = false) throws(CommandFailure) {
        self.file = file
        let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
        // A file without a name gets one through /proc, which a chroot may lack.
        let hasName = hasName || access("/proc/self/fd", X_OK) != 0
        var descriptor = hasName ? -1 : open(folder, O_RDWR | O_CLOEXEC | __O_TMPFILE, mode_t(0o600))
        if descriptor < 0 {
            let name = file + "." + UUID().uuidString.prefix(8).lowercased() + ".unfinished"
            descriptor = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw Self.failure("cannot write \(file)") }
            unfinished = name
        }
        content = OpenFile(takingOwnershipOf: descriptor)
    }

    deinit { if let unfinished { unlink(unfinished) } }

    /// Gives the file its name, without replacing another file.
    /// - Throws: ``CommandFailure`` when the name is taken, or the disk rejects it.
    func keep() throws(CommandFailure) {
        guard fsync(content.descriptor) == 0 else { throw Self.failure("cannot keep \(file)") }
        guard name() == 0 else {
            if errno == EEXIST { throw CommandFailure("\(file) exists already") }
            throw Self.failure("cannot keep \(file)")
        }
        // The name must survive a power failure.
        let folder = open(URL(fileURLWithPath: file).deletingLastPathComponent().path, O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { throw Self.failure("cannot keep \(file): its folder cannot be opened") }
        let result = fsync(folder)
        let code = errno
        close(folder)
        // EINVAL: the file system does not support this, and has nothing to lose.
        if result != 0, code != EINVAL {
            errno = code
            throw Self.failure("\(file) may be lost after a power failure: its folder")
        }
    }

    private func name() -> Int32 {
        guard let unfinished else {
            return linkat(AT_FDCWD, "/proc/self/fd/\(content.descriptor)", AT_FDCWD, file, AT_SYMLINK_FOLLOW)
        }
        // 1 is RENAME_NOREPLACE. Some file systems support only this call, others only `link`.
        if saltern_renameat2(AT_FDCWD, unfinished, AT_FDCWD, file, 1) == 0 {
            self.unfinished = nil
            return 0
        }
        return errno == EEXIST ? -1 : link(unfinished, file)
    }

    private static func failure(_ what: String) -> CommandFailure {
        CommandFailure("\(what): \(String(cString: strerror(errno)))")
    }
}
