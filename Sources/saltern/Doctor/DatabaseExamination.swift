import CommandLineKit
import EventLoop
import Foundation
import Postgres
import SalternServer
import TransportSecurity

/// Checks the database under the server's conditions.
struct DatabaseExamination {
    let configuration: ServeConfiguration
    let loop: EventLoop

    /// The limits of free disk space, in bytes, for a warning and for a problem.
    private static let littleDisk = (warning: Int64(10) << 30, problem: Int64(1) << 30)

    func findings() async -> [Finding] {
        let client = PostgresClient(configuration: patient, loop: loop)
        var findings: [Finding] = []
        do {
            for facts in try await client.execute(ReadDatabaseFacts()) {
                findings.append(Finding("database", .fine, "PostgreSQL answers"))
                findings += judge(facts)
                if client.isDistributed { findings.append(await ClusterLogs.examine(client)) }
                guard facts.isServer else { continue }
                findings += try await examinePooling(client)
                findings += try await examineSettings(client)
                findings += try await examineClock(client)
                findings += await examineInstallation(client)
                findings += try await examineSecrets(client)
                findings += await BackupExamination.examineAge(client)
            }
        } catch {
            let reasons = DatabaseCommand.failure(error, .databaseURL).messages
            findings += reasons.map { Finding("database", .problem, "PostgreSQL cannot be checked: \($0)") }
        }
        await client.shutdown()
        // A database without any reply needs no further findings.
        let answers = findings.contains { $0.severity == .fine }
        return answers ? findings + (await examineSchema()) : findings
    }

    /// One connection suffices, with an error that contains the reason.
    private var patient: PostgresConfiguration {
        var patient = configuration.database
        patient.readConnections = 1
        patient.commitConnections = 1
        return patient
    }

    private func judge(_ facts: DatabaseFacts) -> [Finding] {
        var findings: [Finding] = []
        let version = "\(facts.version / 10_000).\(facts.version % 10_000)"
        findings.append(
            facts.version < 150_000
                ? Finding("database_version", .problem, "PostgreSQL is \(version) and must be 15 or newer")
                : Finding("database_version", .fine, "PostgreSQL is \(version)"))
        if facts.isStandby {
            findings.append(
                Finding(
                    "database_primary", .problem, "the server is a standby: SALTERN_DATABASE_URL needs the primary"))
        }
        findings.append(
            facts.isRestoring
                ? Finding("restore", .problem, "\(UnfinishedRestore())")
                : Finding("restore", .fine, "no restore of the database is unfinished"))
        findings.append(judgeRole(facts))
        findings.append(judgeConnections(facts))
        if configuration.failover == .synchronous, !facts.waitsForStandbys {
            findings.append(
                Finding(
                    "failover", .problem,
                    "SALTERN_FAILOVER is synchronous, and synchronous_standby_names is empty: a failover would lose "
                        + "commits without an error"))
        }
        findings.append(judgeDisk(facts))
        return findings
    }

    private func judgeRole(_ facts: DatabaseFacts) -> Finding {
        if facts.isSuperuser || facts.ownsSchema == true {
            let who = facts.isSuperuser ? "a superuser" : "the schema's owner"
            return Finding(
                "database_role", .warning,
                "the server's role is \(who): it only needs to read and write rows")
        }
        guard facts.isServer else {
            return Finding(
                "database_role", .problem,
                "the server's role cannot read the accounts: run saltern migrate up as the owner, "
                    + "and GRANT saltern_server")
        }
        return Finding("database_role", .fine, "the server's role can read the accounts, and owns nothing")
    }

    private func judgeConnections(_ facts: DatabaseFacts) -> Finding {
        let needed = configuration.databaseConnectionCount
        let handover = configuration.handoverSocket == nil ? "" : ", twice during a handover"
        let text =
            "a node needs up to \(needed) connections "
            + "(\(configuration.loopCount) loops × \(configuration.database.connectionCount)\(handover), "
            + "and 2 for commands); its role can have \(facts.connectionLimit), shared with other programs"
        guard needed <= facts.connectionLimit else {
            return Finding("database_connections", .problem, text + ": \(ServeConfiguration.moreConnections)")
        }
        return Finding("database_connections", .fine, text)
    }

    private func judgeDisk(_ facts: DatabaseFacts) -> Finding {
        let unseen = "the database's disk was not checked: "
        guard facts.isHere else {
            return Finding("database_disk", .fine, unseen + "it is on another machine: monitor it there")
        }
        guard let directory = facts.dataDirectory else {
            return Finding(
                "database_disk", .fine,
                unseen
                    + "the server's role may not read its path. GRANT pg_read_all_settings to the role, or monitor the "
                    + "disk in another way")
        }
        let attributes = try? FileManager.default.attributesOfFileSystem(forPath: directory)
        guard let free = attributes?[.systemFreeSize] as? NSNumber else {
            return Finding(
                "database_disk", .fine, unseen + "\(directory) is not on this machine: monitor it where it is")
        }
        return Self.judgeDisk(free: free.int64Value)
    }

    /// - Parameter free: In bytes.
    static func judgeDisk(free: Int64) -> Finding {
        let text = "the database's disk has \(free >> 20) MiB left"
        switch free {
        case ..<littleDisk.problem: return Finding("database_disk", .problem, text)
        case ..<littleDisk.warning: return Finding("database_disk", .warning, text)
        default: return Finding("database_disk", .fine, text)
        }
    }

    private func examinePooling(_ client: PostgresClient) async throws -> [Finding] {
        let findings = try await client.poolingFindings()
        if !findings.isEmpty {
            return findings.map { Finding("database_pooling", .problem, UnsuitablePooling.sentence($0)) }
        }
        let text =
            client.keepsSessions
            ? "each connection to the database has its own session" : "no transaction needs its own session"
        return [Finding("database_pooling", .fine, text)]
    }

    private func examineSettings(_ client: PostgresClient) async throws(PostgresError) -> [Finding] {
        let settings = try await client.unsafeSettings(
            outlivingPrimary: configuration.failover == .synchronous)
        if settings.isEmpty { return [Finding("database_settings", .fine, "committed data is on the disk")] }
        return settings.map { setting in
            configuration.allowsUnsafeDatabase
                ? Finding("database_settings", .warning, "\(setting); SALTERN_ALLOW_UNSAFE_DATABASE=on allows it")
                : Finding("database_settings", .problem, "the database's \(setting)")
        }
    }

    private func examineClock(_ client: PostgresClient) async throws(PostgresError) -> [Finding] {
        let clock = DatabaseClock()
        try await clock.compare(with: client)
        guard let difference = clock.difference else { return [] }
        let text = Self.sentence(difference)
        if !clock.isTrusted { return [Finding("clock", .problem, text + ": nothing is purged")] }
        let isClose = abs(difference / .seconds(1)) <= 1
        return [Finding("clock", isClose ? .fine : .warning, text)]
    }

    /// - Parameter difference: The lead of this machine's clock over the database's.
    static func sentence(_ difference: Duration) -> String {
        let tenths = Int((abs(difference / .seconds(1)) * 10).rounded())
        if tenths == 0 { return "this machine's clock agrees with the database's" }
        let place = difference < .zero ? "behind" : "ahead of"
        return "this machine's clock is \(tenths / 10).\(tenths % 10) s \(place) the database's"
    }

    private func examineInstallation(_ client: PostgresClient) async -> [Finding] {
        do {
            try await Installation.check(saltPrefix: configuration.service.saltPrefix, database: client)
            return [Finding("salt_prefix", .fine, "the salt prefix is the database's, or will be")]
        } catch {
            return [Finding("salt_prefix", .problem, "\(error)")]
        }
    }

    private func examineSecrets(_ client: PostgresClient) async throws(PostgresError) -> [Finding] {
        let known = configuration.service.masterKey.ids
        let missing = try await SealedSecrets(database: client).counts().filter { !known.contains($0.key) }
        if missing.isEmpty { return [Finding("master_key", .fine, "the master key opens every secret")] }
        return missing.map { id, count in
            Finding("master_key", .problem, "\(count) secrets need the master key \(id), which the file does not have")
        }
    }

    private func examineSchema() async -> [Finding] {
        do throws(MigrationError) {
            let migrator = try Migrator(
                configuration: patient, migrations: Schema.migrations, placements: Schema.placements,
                parts: Schema.parts, loop: loop)
            let problems = try await migrator.incompatibilities()
            if !problems.isEmpty { return problems.map { Finding("schema", .problem, "\($0)") } }
            let findings = try await migrator.verify(rightsOf: nil)
            if findings.isEmpty { return [Finding("schema", .fine, "the schema is current")] }
            return findings.map { finding in
                // A server works with migrations or clean-ups that are still to be done.
                if case .lacks = finding { return Finding("schema", .problem, "\(finding)") }
                return Finding("schema", .warning, "\(finding)")
            }
        } catch {
            return [Finding("schema", .problem, "\(error)")]
        }
    }
}

/// Checks whether the nodes of a cluster log values.
///
/// Citus passes statements on with the values in their text. A node that logs the text of statements, on failure or
/// always, logs those values.
enum ClusterLogs {
    static func examine(_ client: PostgresClient) async -> Finding {
        do {
            return judge(try await client.execute(AskNodesForLogs()))
        } catch {
            return Finding(
                "database_log", .warning, "the statement logging of the cluster's nodes cannot be checked: \(error)")
        }
    }

    static func judge(_ nodes: [AskNodesForLogs.Row]) -> Finding {
        let silent = nodes.filter { $0.logsText == nil }
        let talking = nodes.filter { $0.logsText == true }
        if !talking.isEmpty {
            return Finding(
                "database_log", .warning,
                "the cluster's nodes send each other statements with values in their text, and \(names(talking)) may write "
                    + "them into the log: ALTER ROLE … SET log_min_error_statement = 'panic' for both roles, and leave "
                    + "log_statement and log_min_duration_statement off")
        }
        if !silent.isEmpty {
            return Finding("database_log", .warning, "the statement logging of \(names(silent)) could not be checked")
        }
        return Finding("database_log", .fine, "no node of the cluster logs statements: \(names(nodes))")
    }

    private static func names(_ nodes: [AskNodesForLogs.Row]) -> String {
        nodes.map(\.name).sorted().joined(separator: ", ")
    }
}

/// Queries every node as the current role, in databases with Citus.
///
/// Standbys have the same roles as their primaries. Their own configuration files are not checked.
struct AskNodesForLogs: Statement {
    struct Row: DecodableRow {
        /// The node's address.
        let name: String
        /// Nil without a reply.
        let logsText: Bool?

        init(name: String, logsText: Bool?) {
            self.name = name
            self.logsText = logsText
        }

        init(row: inout RowReader) throws(PostgresError) {
            name = try row.next()
            logsText = try row.next()
        }
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT n.nodename || ':' || n.nodeport, CASE WHEN r.success THEN r.result = 't' END
        FROM run_command_on_all_nodes($command$
            SELECT current_setting('log_min_error_statement') NOT IN ('log', 'fatal', 'panic')
                OR current_setting('log_min_duration_statement') <> '-1'
                OR current_setting('log_statement') IN ('mod', 'all') $command$) r
            JOIN pg_catalog.pg_dist_node n ON n.nodeid = r.nodeid
        """
}
