import CommandLineKit
import HTTPCore
import Postgres
import SalternServer
import TransportSecurity

/// Checks whether backups are possible, and the age of the last one.
enum BackupExamination {
    /// Checks that this machine's `pg_dump` can read the server.
    /// - Parameter server: `server_version_num`.
    static func examineProgram(server: Int32, _ console: Console) async -> Finding {
        let program: Int
        do {
            program = try await DumpProgram.majorVersion(console)
        } catch {
            let reason = (error as? CommandFailure)?.messages.joined(separator: "; ") ?? "\(error)"
            return Finding("backup_program", .warning, "no backup can be made from here: \(reason)")
        }
        return judgeProgram(program, server: server)
    }

    static func judgeProgram(_ program: Int, server: Int32) -> Finding {
        if let obstacle = DumpProgram.obstacle(program: program, server: server) {
            return Finding("backup_program", .problem, "no backup can be made from here: \(obstacle)")
        }
        if let obstacle = DumpProgram.obstacleToRestore(program: program, server: server) {
            return Finding("backup_program", .warning, obstacle)
        }
        return Finding("backup_program", .fine, "pg_dump has version \(program) and can read the server")
    }

    /// Checks the age of the last backup. Returns nothing if the database has no such data, as in a schema without
    /// audit log.
    static func examineAge(_ client: PostgresClient) async -> [Finding] {
        guard let times = try? await BackupRecords(database: client).times() else { return [] }
        return [judge(times)]
    }

    static func judge(_ times: BackupTimes) -> Finding {
        let tolerated = Duration.seconds(2 * 86_400)
        let advice =
            "run saltern backup every day; WAL archives and copies by other programs are not recorded"
        guard let last = times.last else {
            let isNew = times.installed.map { $0 > times.now - tolerated } ?? true
            return Finding(
                "backup_age", isNew ? .fine : .warning,
                "no backup is recorded" + (isNew ? ", and the installation is new" : ": \(advice)"))
        }
        let hours = max(0, (times.now - last) / .seconds(3600))
        let age = hours < 48 ? "\(Int(hours)) hours" : "\(Int(hours / 24)) days"
        let text = "the last backup that is recorded is \(age) old"
        return last > times.now - tolerated
            ? Finding("backup_age", .fine, text) : Finding("backup_age", .warning, "\(text): \(advice)")
    }
}
