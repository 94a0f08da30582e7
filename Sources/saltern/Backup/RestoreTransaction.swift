import CommandLineKit
import Foundation
import Postgres
import SalternServer

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
