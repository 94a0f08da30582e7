import CommandLineKit
import EventLoop
import Foundation
import HTTPCore
import HTTPServer
import Postgres
import SalternServer
import TransportSecurity

/// `saltern doctor`: checks all that `saltern serve` needs, under the same conditions, and changes nothing.
struct ExamineInstallation: Command {
    static let words = ["doctor"]
    static let summary = "check the installation and report problems"
    static let example = "saltern doctor"
    static let help = """
          --json           one object, for scripts: {"problems": N, "warnings": N,
                           "findings": [{subject, severity, text}]}

        Checks settings, addresses, certificate, keys, database and limits. Reads the
        settings of `saltern serve`, connects as the server's role, and also as the
        owner where SALTERN_OWNER_DATABASE_URL is set. Changes nothing. Prints a line
        for each check. Exit status 1: there is a problem.
        """

    private let asJSON: Bool

    init(_ arguments: inout Arguments) { asJSON = arguments.flag("--json") }

    func run(_ console: Console) async throws {
        let findings = try await examine(console)
        try console.report(findings, asJSON: asJSON)
    }

    private func examine(_ console: Console) async throws -> [Finding] {
        // Problems with the setting itself are reported with all others.
        var settings = Settings(console.environment)
        let tls = settings.certificateDirectory()
        let certificate = tls.check().map(Finding.init)
        let configuration: ServeConfiguration
        do throws(CommandFailure) {
            configuration = try ServeConfiguration(
                console.environment, coreCount: ProcessInfo.processInfo.activeProcessorCount)
        } catch {
            return error.messages.map { Finding("configuration", .problem, $0) } + certificate
        }
        let loop = try EventLoop(name: "doctor")
        try loop.start()
        defer { loop.stop() }
        let database = await loop.run { await DatabaseExamination(configuration: configuration, loop: loop).findings() }
        return [Finding("configuration", .fine, "every setting can be used")] + certificate
            + PlaceExamination(configuration: configuration).findings() + [examineDescriptors(configuration)] + database
            + (await OwnerExamination.findings(console))
    }

    private func examineDescriptors(_ configuration: ServeConfiguration) -> Finding {
        let (limit, needed) = (ProcessLimits.raiseDescriptors(), configuration.descriptorCount)
        let text = "the server may need \(needed) descriptors and can have \(limit)"
        guard limit < needed else { return Finding("descriptors", .fine, text) }
        return Finding("descriptors", .warning, text + ": raise LimitNOFILE, or lower SALTERN_MAX_CONNECTIONS")
    }
}

/// Checks that commands can act as the schema's owner, if the settings name one.
enum OwnerExamination {
    static func findings(_ console: Console) async -> [Finding] {
        let setting = DatabaseCommand.ownerSetting(console)
        guard setting != .databaseURL else { return [] }
        do {
            let rows = try await DatabaseCommand.asOwner(console, needsSchema: false) { client in
                try await client.execute(ReadDatabaseFacts())
            }
            guard let facts = rows.first else { return [] }
            return [
                // The first migration creates a missing schema.
                facts.isSuperuser || facts.ownsSchema != false
                    ? Finding("database_owner", .fine, "the role of \(setting) can change the schema")
                    : Finding(
                        "database_owner", .problem,
                        "the role of \(setting) does not own the schema, so it can neither migrate nor "
                            + "administer it"),
                await BackupExamination.examineProgram(server: facts.version, console),
            ]
        } catch {
            let failure = DatabaseCommand.failure(error, setting)
            let reasons = failure.messages
            if failure.code == "two_databases" { return reasons.map { Finding("database_owner", .problem, $0) } }
            return reasons.map { Finding("database_owner", .problem, "the owner cannot connect: \($0)") }
        }
    }
}

/// Checks the server's addresses and the path for handovers.
struct PlaceExamination {
    let configuration: ServeConfiguration

    func findings() -> [Finding] {
        var findings = [examine("listen", .listen, configuration.listen)]
        if let address = configuration.metricsListen {
            findings.append(examine("metrics_listen", .metricsListen, address))
        }
        if let path = configuration.handoverSocket { findings.append(examineHandover(path)) }
        return findings
    }

    private func examine(_ subject: String, _ setting: Setting, _ address: SocketAddress) -> Finding {
        do throws(ListenError) {
            let missing = try address.requireOwnHost()
            // The service's unit may grant a right that this process does not have, which is not visible from here.
            guard address.isPermitted else {
                return Finding(
                    subject, .warning,
                    "\(setting): this process may not listen on port \(address.port): use one from 1024 on, or add to the unit "
                        + "AmbientCapabilities= and CapabilityBoundingSet=CAP_NET_BIND_SERVICE")
            }
            guard missing.isEmpty || address.host == "*" || address.host == "::" else {
                return Finding(
                    subject, .warning,
                    "\(setting): this machine does not have all addresses of \(address): nothing is served at "
                        + missing.map(\.description).joined(separator: ", "))
            }
            return Finding(subject, .fine, "\(setting): this machine has the address of \(address)")
        } catch {
            return Finding(subject, .problem, "\(setting): \(error)")
        }
    }

    private func examineHandover(_ path: String) -> Finding {
        let subject = "handover"
        let setting = Setting.handoverSocket
        do {
            try HandoverPlace.requireRoom(at: path)
        } catch {
            return Finding(subject, .problem, "\(error)")
        }
        let folder = URL(filePath: path).deletingLastPathComponent().path(percentEncoded: false)
        // systemd's RuntimeDirectory= creates it when the server starts.
        guard FileManager.default.fileExists(atPath: folder) else {
            return Finding(
                subject, .warning,
                "\(setting): there is no folder \(folder): create it, unless RuntimeDirectory= of the unit does")
        }
        guard faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0 else {
            return Finding(
                subject, .problem,
                "\(setting): nothing can be written in \(folder): \(String(cString: strerror(errno))); the server "
                    + "creates its socket there")
        }
        return Finding(subject, .fine, "\(setting): there is room at \(path) for the server's socket")
    }
}

/// One result of ``ExamineInstallation`` or ``CheckCertificate``.
struct Finding: Sendable {
    /// The subject of the check: a stable name for programs.
    let subject: String
    let severity: CertificateFinding.Severity
    /// One sentence for people, with the result and the remedy.
    let text: String

    init(_ subject: String, _ severity: CertificateFinding.Severity, _ text: String) {
        self.subject = subject
        self.severity = severity
        self.text = text
    }

    /// Converts a finding about TLS certificate and keys.
    init(_ finding: CertificateFinding) {
        self.init("tls_" + finding.subject.rawValue, finding.severity, finding.text)
    }
}

extension Console {
    /// Prints findings, as one line each or as one object.
    /// - Throws: ``CommandFailure`` when one of them is a problem.
    func report(_ findings: [Finding], asJSON: Bool) throws(CommandFailure) {
        let problems = findings.count { $0.severity == .problem }
        if asJSON {
            printJSON { writer in
                writer.member("problems", problems)
                writer.member("warnings", findings.count { $0.severity == .warning })
                writer.array("findings") { writer in
                    for finding in findings {
                        writer.object { writer in
                            writer.member("subject", finding.subject)
                            writer.member("severity", finding.severity.rawValue)
                            writer.member("text", finding.text)
                        }
                    }
                }
            }
        } else {
            for finding in findings { print("\(finding.severity.rawValue): \(finding.text)") }
        }
        if problems > 0 { throw CommandFailure("\(problems) to fix") }
    }
}

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
