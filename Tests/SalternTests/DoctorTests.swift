import CommandLineKit
import EventLoop
import Foundation
import HTTPCore
import Postgres
import SalternServer
import SalternTesting
import Testing
import TransportSecurity

@testable import saltern

/// `saltern doctor` on installations that are whole, and on such as are not.
@Suite struct DoctorTests {
    private struct Examined {
        let status: Int32
        let severities: [String: Set<String>]
        let text: String
    }

    private struct Patient {
        let database: TemporaryDatabase
        let folder: String
        var environment: [String: String]

        /// Does something to the database as its superuser.
        func administer(_ sql: String) async throws {
            let loop = try EventLoop(name: "administrator")
            try loop.start()
            defer { loop.stop() }
            try await PostgresScript.run([sql], configuration: .patient(database.administratorURL), loop: loop)
        }

        func examine() async throws -> Examined {
            let output = folder + "/output"
            try #require(FileManager.default.createFile(atPath: output, contents: nil))
            let handle = try #require(FileHandle(forWritingAtPath: output))
            let console = Console(environment: environment, output: handle, error: .nullDevice)
            let status = await CommandLineTool.saltern.run(["doctor", "--json"], console: console)
            let data = try Data(contentsOf: URL(filePath: output))
            let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
            let findings = try #require(object["findings"] as? [[String: String]])
            #expect(object["problems"] as? Int == findings.count { $0["severity"] == "problem" })
            return Examined(
                status: status,
                severities: findings.reduce(into: [:]) { found, finding in
                    found[finding["subject"] ?? "", default: []].insert(finding["severity"] ?? "")
                },
                text: String(decoding: data, as: UTF8.self))
        }
    }

    private func withPatient(
        migrations: [Migration] = Schema.migrations, _ body: (inout Patient) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        let certificates = CertificateDirectory(path: directory.path + "/tls")
        _ = try certificates.create(hosts: [Host("localhost")])
        let masterKey = MasterKeyFile(path: directory.path + "/master.key")
        _ = try masterKey.create()
        try await TemporaryDatabase.with(migrations: migrations) { database in
            var patient = Patient(
                database: database, folder: directory.path,
                environment: [
                    "SALTERN_DATABASE_URL": database.serverURL, "SALTERN_TLS_DIRECTORY": certificates.path,
                    "SALTERN_MASTER_KEY_FILE": masterKey.path, "SALTERN_SALT_PREFIX": "com.example.test:",
                    "SALTERN_LOOPS": "2", "SALTERN_ALLOW_UNSAFE_DATABASE": "on", "SALTERN_MAX_CONNECTIONS": "10",
                ])
            try await body(&patient)
        }
    }

    @Test func `an installation that is whole has no problem, and is not changed`() async throws {
        try await withPatient { patient in
            let found = try await patient.examine()
            #expect(found.status == 0, "\(found.text)")
            for subject in [
                "configuration", "tls_expiry", "tls_verification", "descriptors", "database", "database_version",
                "restore", "database_role", "database_connections", "clock", "salt_prefix", "master_key", "schema",
            ] { #expect(found.severities[subject] == ["fine"], "\(subject): \(found.text)") }
            try await patient.administer("DO $$ BEGIN ASSERT (SELECT count(*) FROM saltern.installation) = 0; END $$")
        }
    }

    @Test(arguments: [
        ("REVOKE INSERT ON saltern.items FROM saltern_server", "GRANT INSERT ON items"),
        ("REVOKE UPDATE ON saltern.sessions FROM saltern_server", "GRANT UPDATE ON sessions"),
        (
            "REVOKE UPDATE (used_at) ON saltern.invites FROM saltern_server",
            "GRANT UPDATE (used_at) ON invites"
        ),
        (
            "ALTER TABLE saltern.logins DROP CONSTRAINT logins_pkey",
            "CREATE UNIQUE INDEX logins_pkey ON saltern.logins USING btree (userid)"
        ),
        (
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'saltern.items_by_revision'::regclass",
            "CREATE INDEX items_by_revision ON saltern.items"
        ),
        ("ALTER TABLE saltern.items DROP CONSTRAINT items_check", "CONSTRAINT items_check ON items"),
        ("ALTER TABLE saltern.shares ALTER COLUMN sealed DROP NOT NULL", "COLUMN shares.sealed bytea NOT NULL"),
        ("ALTER TABLE saltern.accounts DROP COLUMN writer", "COLUMN accounts.writer bigint"),
    ])
    func `a schema that somebody has changed is a problem, and what it lacks is named`(
        _ change: String, _ part: String
    ) async throws {
        try await withPatient { patient in
            try await patient.administer(change)
            let found = try await patient.examine()
            #expect(found.status == 1)
            #expect(found.severities["schema"] == ["problem"], "\(found.text)")
            #expect(found.text.contains(part), "\(found.text)")
        }
    }

    @Test func `a role that may read nothing is a problem, and so is all that it may not do`() async throws {
        try await withPatient { patient in
            try await patient.administer("REVOKE ALL ON ALL TABLES IN SCHEMA saltern FROM saltern_server")
            let found = try await patient.examine()
            #expect(found.status == 1)
            #expect(found.severities["database_role"] == ["problem"], "\(found.text)")
            #expect(found.text.contains(/and \d+ more/), "\(found.text)")
        }
    }

    @Test func `the owner has to be able to connect and to own the schema, where it is told`() async throws {
        try await withPatient { patient in
            #expect(try await patient.examine().severities["database_owner"] == nil)
            for (url, severity) in [
                (patient.database.ownerURL, "fine"), (patient.database.serverURL, "problem"),
                ("postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=2", "problem"),
            ] {
                patient.environment["SALTERN_OWNER_DATABASE_URL"] = url
                let found = try await patient.examine()
                #expect(found.severities["database_owner"] == [severity], "\(found.text)")
                #expect(found.status == (severity == "fine" ? 0 : 1))
            }
        }
    }

    @Test func `secrets that the master key does not open are a problem`() async throws {
        try await withPatient { patient in
            try await patient.administer(
                """
                INSERT INTO saltern.second_factors (account_id, sealed_secret, created_at)
                VALUES (gen_random_uuid(), decode('01' || repeat('7f', 60), 'hex'), now())
                """)
            let found = try await patient.examine()
            #expect(found.status == 1)
            #expect(found.severities["master_key"] == ["problem"], "\(found.text)")
        }
    }

    @Test(arguments: [
        ("SALTERN_LISTEN", "192.0.2.7:8443", "listen", "problem"),
        ("SALTERN_LISTEN", "nowhere.invalid:8443", "listen", "problem"),
        ("SALTERN_METRICS_LISTEN", "192.0.2.7:9464", "metrics_listen", "problem"),
        ("SALTERN_METRICS_LISTEN", "127.0.0.1:9464", "metrics_listen", "fine"),
        ("SALTERN_HANDOVER_SOCKET", "FOLDER/master.key", "handover", "problem"),
        ("SALTERN_HANDOVER_SOCKET", "FOLDER/nowhere/handover", "handover", "warning"),
        ("SALTERN_HANDOVER_SOCKET", "FOLDER/handover", "handover", "fine"),
    ])
    func `where a server is to be found has to be on this machine`(
        _ setting: String, _ value: String, _ subject: String, _ severity: String
    ) async throws {
        try await withPatient { patient in
            patient.environment[setting] = value.replacingOccurrences(of: "FOLDER", with: patient.folder)
            let found = try await patient.examine()
            #expect(found.status == (severity == "problem" ? 1 : 0), "\(found.text)")
            #expect(found.severities[subject] == [severity], "\(found.text)")
        }
    }

    @Test func `a restore that has not come to its end is a problem, and what finishes it is said`() async throws {
        try await withPatient { patient in
            try await patient.administer("CREATE SCHEMA saltern_restoring")
            let found = try await patient.examine()
            #expect(found.status == 1)
            #expect(found.severities["restore"] == ["problem"])
            #expect(found.text.contains("saltern restored --end-sessions"))
            #expect(found.severities["schema"] == ["fine"])
        }
    }

    @Test func `every setting that cannot be used is named, and the certificate is looked at all the same`()
        async throws
    {
        try await withPatient { patient in
            patient.environment["SALTERN_LOOPS"] = "none"
            patient.environment["SALTERN_SALT_PREFIX"] = nil
            let found = try await patient.examine()
            #expect(found.status == 1)
            #expect(found.severities["configuration"] == ["problem"])
            #expect(found.text.contains("SALTERN_LOOPS") && found.text.contains("SALTERN_SALT_PREFIX"))
            #expect(found.severities["tls_expiry"] == ["fine"])
        }
    }

    @Test func `a database that cannot be reached is a problem with its reason, and the rest is looked at`()
        async throws
    {
        try await withPatient { patient in
            patient.environment["SALTERN_DATABASE_URL"] = "postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=2"
            let found = try await patient.examine()
            #expect(found.status == 1)
            #expect(found.severities["database"] == ["problem"])
            #expect(found.text.contains("check that PostgreSQL runs, and that SALTERN_DATABASE_URL leads there"))
            #expect(found.severities["tls_expiry"] == ["fine"])
        }
    }

    @Test func `an owner as the server's role is a warning, another salt prefix a problem`() async throws {
        try await withPatient { patient in
            patient.environment["SALTERN_DATABASE_URL"] = patient.database.ownerURL
            try await patient.administer(
                """
                INSERT INTO saltern.installation 
                    (salt_prefix, decoy_secret, decoy_iterations, decoys_drawn_at, created_at, fingerprint)
                VALUES ('com.example.other:', decode(repeat('00', 32), 'hex'), array_fill(600000, ARRAY[256]),
                    '-infinity', now(), saltern.database_fingerprint())
                """)
            let found = try await patient.examine()
            #expect(found.status == 1)
            #expect(found.severities["database_role"] == ["warning"], "\(found.text)")
            #expect(found.severities["salt_prefix"] == ["problem"], "\(found.text)")
        }
    }

    @Test func `a schema that is behind is a problem, and so are too many connections`() async throws {
        try await withPatient(migrations: Schema.migrations.dropLast()) { patient in
            patient.environment["SALTERN_LOOPS"] = "256"
            patient.environment["SALTERN_READ_CONNECTIONS"] = "64"
            patient.environment["SALTERN_COMMIT_CONNECTIONS"] = "64"
            let found = try await patient.examine()
            #expect(found.status == 1)
            #expect(found.severities["schema"] == ["problem"], "\(found.text)")
            #expect(found.severities["database_connections"] == ["problem"], "\(found.text)")
        }
    }

    @Test func `failovers that are said to lose nothing, without a standby that is waited for, are a problem`()
        async throws
    {
        try await withPatient { patient in
            patient.environment["SALTERN_FAILOVER"] = "synchronous"
            let found = try await patient.examine()
            #expect(found.status == 1)
            #expect(found.severities["failover"] == ["problem"])
            try await patient.administer(
                "ALTER DATABASE \(patient.database.name) SET synchronous_commit = 'local'")
            #expect(try await patient.examine().text.contains("synchronous_commit is local"))
        }
    }

    @Test func `a disk that the server's role may not find is said, and one that it may is looked at`() async throws {
        try await withPatient { patient in
            let found = try await patient.examine()
            #expect(found.status == 0)
            #expect(found.severities["database_disk"] == ["fine"], "\(found.text)")
            #expect(found.text.contains("pg_read_all_settings"))
            // As the handbook says, but for this database's role alone: the tests share it.
            patient.environment["SALTERN_DATABASE_URL"] = patient.database.administratorURL
            let seen = try await patient.examine()
            #expect(!seen.text.contains("pg_read_all_settings"))
            #expect(seen.text.contains("the database's disk has"), "\(seen.text)")
        }
    }

    @Test func `little of the database's disk is a warning, nearly nothing a problem`() {
        func severity(_ free: Int64) -> CertificateFinding.Severity {
            DatabaseExamination.judgeDisk(free: free).severity
        }
        for free: Int64 in [0, (1 << 30) - 1] { #expect(severity(free) == .problem) }
        for free: Int64 in [1 << 30, (10 << 30) - 1] { #expect(severity(free) == .warning) }
        for free: Int64 in [10 << 30, 1 << 50] { #expect(severity(free) == .fine) }
        #expect(DatabaseExamination.judgeDisk(free: 3 << 20).text == "the database's disk has 3 MiB left")
    }

    @Test func `connections for two servers are counted where one takes over from the other`() async throws {
        try await withPatient { patient in
            try await patient.administer("ALTER DATABASE \(patient.database.name) CONNECTION LIMIT 24")
            #expect(try await patient.examine().severities["database_connections"] == ["fine"])
            patient.environment["SALTERN_HANDOVER_SOCKET"] = patient.folder + "/handover"
            #expect(try await patient.examine().severities["database_connections"] == ["problem"])
        }
    }

    @Test func `the version is a version`() async throws {
        #expect(ShowVersion.version.wholeMatch(of: /\d+\.\d+\.\d+/) != nil)
    }

    @Test(arguments: [
        (Duration.milliseconds(-20), "agrees with the database's"), (.milliseconds(49), "agrees with the database's"),
        (.milliseconds(-50), "is 0.1 s behind the database's"),
        (.milliseconds(1_240), "is 1.2 s ahead of the database's"),
        (.seconds(-90), "is 90.0 s behind the database's"),
    ])
    func `a clock is ahead, behind, or neither`(difference: Duration, words: String) {
        #expect(DatabaseExamination.sentence(difference) == "this machine's clock " + words)
    }
}
