import EventLoop
import Foundation
import HTTPCore
import HTTPServer
import Postgres
import SalternServer
import SalternTesting
import Synchronization
import Testing
import TransportSecurity

@testable import saltern

/// The whole server as `saltern serve` composes it: TLS, two loops, a real database.
@Suite struct LiveServerTests {
    private struct Live {
        let server: RunningServer
        let configuration: ServeConfiguration
        let certificates: CertificateDirectory
        let log: CapturedLog

        func connect() async throws -> RawConnection {
            let context = try TLSClientContext(trust: .pins([certificates.pins().active]))
            return try await RawConnection.open(port: server.address.port, context: context)
        }
    }

    private func withServer(
        _ changes: [String: String] = [:], prepare: (TemporaryDatabase) async throws -> Void = { _ in },
        _ body: (Live) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        let certificates = CertificateDirectory(path: directory.path + "/tls")
        _ = try certificates.create(hosts: [Host("localhost")])
        let masterKey = MasterKeyFile(path: directory.path + "/master.key")
        _ = try masterKey.create()
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let environment = [
                "SALTERN_DATABASE_URL": database.serverURL, "SALTERN_TLS_DIRECTORY": certificates.path,
                "SALTERN_MASTER_KEY_FILE": masterKey.path,
                "SALTERN_LISTEN": "127.0.0.1:0", "SALTERN_METRICS_LISTEN": "127.0.0.1:0",
                "SALTERN_SALT_PREFIX": "com.example.test:", "SALTERN_REGISTRATION": "open", "SALTERN_LOOPS": "2",
                "SALTERN_ALLOW_UNSAFE_DATABASE": "on",
            ]
            try await prepare(database)
            var configuration = try ServeConfiguration(environment.merging(changes) { $1 }, coreCount: 2)
            configuration.database.becomePatient()
            let captured = CapturedLog()
            let log = Log(minimumLevel: .debug, sink: captured) { UTCTimestamp(microsecondsSinceEpoch: 0) }
            let server = try await RunningServer.start(configuration, log: log, onTakeover: {})
            do {
                try await body(
                    Live(server: server, configuration: configuration, certificates: certificates, log: captured))
            } catch {
                await server.stop(timeout: .milliseconds(1))
                throw error
            }
            await server.stop(timeout: .seconds(10))
        }
    }

    @Test func `a database that may lose commits, or isolates otherwise, is served only on demand`() async throws {
        let isolation = { (database: TemporaryDatabase) in
            let loop = try EventLoop(name: "administrator")
            try loop.start()
            defer { loop.stop() }
            try await PostgresScript.run(
                ["ALTER DATABASE \(database.name) SET default_transaction_isolation = 'serializable'"],
                configuration: .patient(database.administratorURL), loop: loop)
        }
        let refusal = await #expect(throws: UnsafeDatabase.self) {
            try await withServer(["SALTERN_ALLOW_UNSAFE_DATABASE": "off"], prepare: isolation) { _ in }
        }
        #expect("\(try #require(refusal))".contains("default_transaction_isolation is 'serializable'"))
        try await withServer(prepare: isolation) { live in
            let lines = live.log.lines.filter { $0.contains(#""event":"database_unsafe""#) }
            #expect(lines.contains { $0.contains("default_transaction_isolation") && $0.contains("warning") })
        }
    }

    @Test func `a role that cannot write by its settings is told so, and not to wait for a primary`() async throws {
        let refusal = await #expect(throws: UnsafeDatabase.self) {
            try await withServer(
                ["SALTERN_ALLOW_UNSAFE_DATABASE": "off"],
                prepare: { database in
                    try await database.administer(
                        "ALTER DATABASE \(database.name) SET default_transaction_read_only = on")
                }
            ) { _ in }
        }
        #expect("\(try #require(refusal))".contains("default_transaction_read_only is on: nothing can be written"))
    }

    @Test func `a failover that is to lose nothing needs commits that wait for a standby`() async throws {
        let local = { (database: TemporaryDatabase) in
            let loop = try EventLoop(name: "administrator")
            try loop.start()
            defer { loop.stop() }
            try await PostgresScript.run(
                ["ALTER DATABASE \(database.name) SET synchronous_commit = 'remote_write'"],
                configuration: .patient(database.administratorURL), loop: loop)
        }
        try await withServer(prepare: local) { live in
            #expect(!live.log.lines.contains { $0.contains("synchronous_commit") })
        }
        let changes = ["SALTERN_FAILOVER": "synchronous", "SALTERN_ALLOW_UNSAFE_DATABASE": "off"]
        let refusal = await #expect(throws: UnsafeDatabase.self) {
            try await withServer(changes, prepare: local) { _ in }
        }
        #expect("\(try #require(refusal))".contains("synchronous_commit is remote_write"))
        try await withServer(["SALTERN_FAILOVER": "synchronous"]) { live in
            #expect(live.log.lines.contains { $0.contains("failover_not_synchronous") })
        }
    }

    @Test func `a server whose loops want more connections than there are says so`() async throws {
        let few = { (database: TemporaryDatabase) in
            let loop = try EventLoop(name: "administrator")
            try loop.start()
            defer { loop.stop() }
            try await PostgresScript.run(
                ["ALTER DATABASE \(database.name) CONNECTION LIMIT 23"],
                configuration: .patient(database.administratorURL), loop: loop)
        }
        try await withServer(prepare: few) { live in
            let line = live.log.lines.first { $0.contains("database_connections_short") }
            #expect(line?.contains(#""limit":23,"needed":24,"remedy":"raise max_connections or"#) == true)
        }
        try await withServer { live in
            #expect(!live.log.lines.contains { $0.contains("database_connections_short") })
        }
    }

    @Test func `a purge that nobody dares counts as one that failed`() async throws {
        try await withServer { live in
            let facts = MetricsFacts(live.configuration.tls)
            let loop = try EventLoop(name: "purge")
            try loop.start()
            defer { loop.stop() }
            await loop.run { [configuration = live.configuration, log = live.log] in
                let database = PostgresClient(configuration: configuration.database, loop: loop)
                let purge = RegularPurge(
                    database: database, configuration: configuration.service, clock: DatabaseClock(), facts: facts,
                    log: Log(minimumLevel: .debug, sink: log) { UTCTimestamp(microsecondsSinceEpoch: 0) })
                await purge.run()
                await database.shutdown()
            }
            #expect(facts.purge.failures == 1)
            #expect(live.log.lines.contains { $0.contains("not_purged_because_of_clock") })
        }
    }

    @Test func `metrics tell what was purged, when, and of how many accounts that was left`() async throws {
        let administratorURL = Mutex("")
        try await withServer {
            administratorURL.withLock { [url = $0.administratorURL] in $0 = url }
        } _: { live in
            let metrics = { () async throws -> String in
                let scraper = try await RawConnection.open(port: try #require(live.server.metricsAddress?.port))
                try await scraper.send(json("GET", "/metrics", nil))
                return try await scraper.reply().text
            }
            #expect(try await metrics().contains("saltern_purge_last_success_timestamp_seconds 0\n"))
            let begun = Int(Date().timeIntervalSince1970)
            let loop = try EventLoop(name: "administrator")
            try loop.start()
            defer { loop.stop() }
            let (url, server, service) = (administratorURL.withLock { $0 }, live.server, live.configuration.service)
            try await loop.run {
                let postgres = PostgresClient(configuration: try .patient(url), loop: loop)
                _ = try await postgres.execute(AddExpiredContents())
                try await postgres.withTransaction { transaction in
                    _ = try await transaction.execute(HoldOneAccount())
                    await server.purge(service)
                }
                await postgres.shutdown()
            }
            let text = try await metrics()
            #expect(text.contains("saltern_purge_rows_total{kind=\"contents\"} 3\n"))
            #expect(text.contains("saltern_purge_rows_total{kind=\"shares\"} 0\n"))
            #expect(text.contains("saltern_purge_skipped_accounts 1\n"))
            #expect(text.contains("saltern_purge_failures_total 0\n"))
            let name = "saltern_purge_last_success_timestamp_seconds "
            let time = text.split(separator: "\n").first { $0.hasPrefix(name) }
            let seconds = try #require(time?.split(separator: " ").last.flatMap { Int($0) })
            #expect((begun - 1...begun + 600).contains(seconds))
            await server.purge(service)
            let later = try await metrics()
            #expect(later.contains("saltern_purge_rows_total{kind=\"contents\"} 5\n"))
            #expect(later.contains("saltern_purge_skipped_accounts 0\n"))
        }
    }

    @Test func `the metric of the purge has each number of its report`() {
        var numbers = Mirror(reflecting: Purge.Report.empty).children.compactMap(\.label)
        numbers.removeAll { $0 == "skippedAccounts" }
        #expect(Purge.Report.empty.rows.map { "\($0.kind)" }.sorted() == numbers.sorted())
    }

    /// Two accounts, of which one has two rows that are due and the other three.
    private struct AddExpiredContents: Statement {
        static let sql: SQL<Self> = """
            WITH account AS (
                INSERT INTO saltern.accounts (account_id, userid, created_at, kept_count, kept_bytes)
                SELECT gen_random_uuid(), rows::text, now(), rows, rows FROM generate_series(2, 3) rows
                RETURNING account_id, kept_count)
            INSERT INTO saltern.deleted_contents (account_id, item_id, collection, format, body, created_at, expires_at)
            SELECT account_id, gen_random_uuid(), 'default', 'opaque', '\\x00', now(), now() - interval '1 hour'
            FROM account, generate_series(1, kept_count)
            """
        typealias Row = Void
    }

    /// Holds the row of the account with two.
    private struct HoldOneAccount: Statement {
        static let sql: SQL<Self> = "SELECT FROM saltern.accounts WHERE userid = '2' FOR UPDATE"
        typealias Row = Void
    }

    private static func patient(_ environment: [String: String]) throws -> ServeConfiguration {
        var configuration = try ServeConfiguration(environment, coreCount: 1)
        configuration.database.becomePatient()
        return configuration
    }

    @Test func `a server that starts before its database waits for it`() async throws {
        let directory = try TemporaryDirectory()
        let certificates = CertificateDirectory(path: directory.path + "/tls")
        _ = try certificates.create(hosts: [Host("localhost")])
        let masterKey = MasterKeyFile(path: directory.path + "/master.key")
        _ = try masterKey.create()
        try await TemporaryCluster.with { cluster in
            let loop = try EventLoop(name: "administrator")
            try loop.start()
            defer { loop.stop() }
            try await PostgresScript.run(
                ["CREATE ROLE saltern_server NOLOGIN"], configuration: .patient(cluster.url), loop: loop)
            _ = try await Migrator(
                configuration: .patient(cluster.url), migrations: Schema.migrations, loop: loop
            ).up()
            try await cluster.stop(.fast)
            let configuration = try Self.patient(
                [
                    "SALTERN_DATABASE_URL": cluster.url, "SALTERN_TLS_DIRECTORY": certificates.path,
                    "SALTERN_MASTER_KEY_FILE": masterKey.path, "SALTERN_LISTEN": "127.0.0.1:0",
                    "SALTERN_SALT_PREFIX": "com.example.test:", "SALTERN_LOOPS": "1",
                    "SALTERN_ALLOW_UNSAFE_DATABASE": "on",
                ])
            let captured = CapturedLog()
            let log = Log(minimumLevel: .debug, sink: captured) { UTCTimestamp(microsecondsSinceEpoch: 0) }
            let starting = Task { try await RunningServer.start(configuration, log: log, onTakeover: {}) }
            while !captured.lines.contains(where: { $0.contains("waiting_for_database") }) {
                try await Task.sleep(for: .milliseconds(20))
            }
            try await cluster.start()
            let server = try await starting.value
            #expect(captured.lines.count { $0.contains("waiting_for_database") } == 1)
            // The listener of the waiting start serves now.
            let context = try TLSClientContext(trust: .pins([certificates.pins().active]))
            let connection = try await RawConnection.open(port: server.address.port, context: context)
            try await connection.send(json("GET", "/v1/health/ready", nil))
            #expect(try await connection.reply().status == 200)
            await server.stop(timeout: .seconds(10))
        }
    }

    @Test func `what only an operator can mend is not waited for`() {
        func code(_ code: String) -> PostgresError {
            .unavailable(retryAfter: .zero, because: .server(SQLState(code)))
        }
        func failure(_ reason: ConnectionFailure?) -> PostgresError {
            .unavailable(retryAfter: .zero, because: reason)
        }
        func isWaitedFor(_ error: any Error) -> Bool { DatabasePatience.passing(error) != nil }
        let hopeless: [PostgresError] = [
            code("28P01"), code("28000"), code("3D000"), failure(.passwordMissing), code("42704"), code("22023"),
            code("55P02"), code("42601"), code("42501"),
            failure(.tls(.untrustedCertificate)),
            PostgresError.configuration("x"),
        ]
        for error in hopeless {
            #expect(!isWaitedFor(error))
            #expect(!isWaitedFor(MigrationError.database(error)))
        }
        let passing: [PostgresError] = [
            code("57P03"), code("53300"), failure(.system(111)), failure(.unsuitable("a standby")), failure(nil),
            PostgresError.connectionLost, PostgresError.timedOut,
        ]
        for error in passing {
            #expect(isWaitedFor(error))
            #expect(isWaitedFor(MigrationError.database(error)))
        }
        #expect(!isWaitedFor(MigrationError.findings([])))
        #expect(!isWaitedFor(InstallationError.saltPrefixDiffers))
    }

    private func json(_ method: String, _ path: String, _ body: String?, fields: String = "") -> String {
        let content = body.map { "Content-Type: application/json\r\nContent-Length: \($0.utf8.count)\r\n\r\n\($0)" }
        return "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n\(fields)\(content ?? "\r\n")"
    }

    private func object(_ reply: RawConnection.Reply) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any])
    }

    @Test func `a person registers, stores an item and reads it back, over pinned TLS`() async throws {
        try await withServer { live in
            let client = try await live.connect()
            let key = Fixtures.passwordKey("live")
            try await client.send(
                json(
                    "POST", "/v1/accounts",
                    #"{"userid":"ada@example.org","passwordKey":"\#(key)","kdf":{"iterations":600000}}"#))
            let registration = try await client.reply()
            #expect(registration.status == 201)
            let session = try #require(try object(registration)["session"] as? [String: Any])
            let token = try #require(session["token"] as? String)

            let id = Fixtures.uuid()
            let sealed = Fixtures.sealed(plaintext: 1_000)
            try await client.send(
                json(
                    "PUT", "/v1/items/\(id)", #"{"format":"aes-256-gcm","body":"\#(sealed)"}"#,
                    fields: "Authorization: Bearer \(token)\r\nIf-None-Match: *\r\n"))
            let put = try await client.reply()
            #expect(put.status == 201)
            #expect(put.field("ETag") == "\"1\"")

            // From another connection, which may be on the other loop.
            let other = try await live.connect()
            try await other.send(
                json("GET", "/v1/items/\(id)", nil, fields: "Authorization: Bearer \(token)\r\n"))
            let item = try await other.reply()
            #expect(item.status == 200)
            #expect(try object(item)["body"] as? String == sealed)
        }
    }

    @Test func `the body of somebody without a token is not read`() async throws {
        try await withServer { live in
            let client = try await live.connect()
            // The client waits to be told to go on, and is told no.
            try await client.send(
                "PUT /v1/items/\(Fixtures.uuid()) HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                    + "If-None-Match: *\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
            let reply = try await client.reply()
            #expect(reply.status == 401)
            #expect(reply.field("WWW-Authenticate") == "Bearer")
            #expect(reply.field("Connection") == "close")
        }
    }

    @Test func `a long body is read for a live session or a share's manager only`() async throws {
        try await withServer { live in
            func answer(_ method: String, _ path: String, token: String, length: Int) async throws -> Int {
                let client = try await live.connect()
                try await client.send(
                    "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                        + "Authorization: Bearer \(token)\r\nIf-None-Match: *\r\n"
                        + "Content-Type: application/json\r\nContent-Length: \(length)\r\n\r\n")
                return try await client.reply().status
            }
            // Well-formed, but never issued.
            let stranger = "slt_" + String(repeating: "A", count: 64)
            let item = "/v1/items/\(Fixtures.uuid())"
            for (method, path) in [
                ("PUT", item), ("POST", "/v1/items/batch"), ("PUT", "/v1/rotations/\(Fixtures.uuid())/items"),
                ("POST", "/v1/shares"), ("PUT", "/v1/account/receipt"), ("PUT", "/v1/shares/AAAAAAAAAAAAAAAAAAAAAA"),
            ] {
                #expect(try await answer(method, path, token: stranger, length: 300_000) == 401, "\(method) \(path)")
                // A short one is read, so that its sender is asked about once.
                #expect(try await answer(method, path, token: stranger, length: 90_000) == 100, "\(method) \(path)")
            }
            let manager = "slm_" + String(repeating: "A", count: 43)
            #expect(
                try await answer("PUT", "/v1/shares/AAAAAAAAAAAAAAAAAAAAAA", token: manager, length: 300_000) == 404)

            let client = try await live.connect()
            let key = Fixtures.passwordKey("live")
            try await client.send(
                json(
                    "POST", "/v1/accounts",
                    #"{"userid":"ada@example.org","passwordKey":"\#(key)","kdf":{"iterations":600000}}"#))
            let session = try #require(try object(try await client.reply())["session"] as? [String: Any])
            let token = try #require(session["token"] as? String)
            #expect(try await answer("PUT", item, token: token, length: 300_000) == 100)
            try await client.send(
                json("DELETE", "/v1/sessions/current", nil, fields: "Authorization: Bearer \(token)\r\n"))
            #expect(try await client.reply().status == 204)
            #expect(try await answer("PUT", item, token: token, length: 300_000) == 401)
        }
    }

    @Test func `what a client asks for and HTTP need not have is no error of the server`() async throws {
        try await withServer { live in
            for (request, status) in [
                ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
                ("POST /v1/kdf HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
            ] {
                let client = try await live.connect()
                try await client.send(request)
                #expect(try await client.reply().status == status)
                let line = live.log.lines.first { $0.contains("\"status\":\(status)") }
                #expect(line?.contains("\"level\":\"info\"") == true)
            }
        }
    }

    @Test func `every reply has the security fields, also one to what is not HTTP`() async throws {
        try await withServer { live in
            for request in [json("GET", "/v1/health/live", nil), json("GET", "/nowhere", nil), "NONSENSE\r\n\r\n"] {
                let client = try await live.connect()
                try await client.send(request)
                let reply = try await client.reply()
                #expect(reply.field("Cache-Control") == "no-store, no-transform")
                #expect(reply.field("X-Content-Type-Options") == "nosniff")
                #expect(reply.field("Strict-Transport-Security") == nil)
                #expect(reply.field("X-Request-Id")?.count == 32)
                #expect(reply.field("Server") == nil)
            }
        }
    }

    @Test func `after a rotation new connections get the new key and service tells its pins`() async throws {
        try await withServer { live in
            let kept = try await live.connect()
            let pins = try live.certificates.rotate()
            live.server.use(try live.configuration.tls.reloaded(), live.configuration.service)
            let deadline = ContinuousClock.now + .seconds(60)
            while (try? await live.connect()) == nil, ContinuousClock.now < deadline {
                try await Task.sleep(for: .milliseconds(10))
            }
            let fresh = try await live.connect()
            for client in [fresh, kept] {
                try await client.send(json("GET", "/v1/service", nil))
                #expect(try await client.reply().text.contains(pins.active.description))
            }
        }
    }

    @Test func `metrics count requests by route template`() async throws {
        try await withServer { live in
            let client = try await live.connect()
            try await client.send(json("GET", "/v1/items/\(Fixtures.uuid())", nil))
            #expect(try await client.reply().status == 401)
            let port = try #require(live.server.metricsAddress?.port)
            let scraper = try await RawConnection.open(port: port)
            try await scraper.send(json("GET", "/metrics", nil))
            let text = try await scraper.reply().text
            #expect(text.contains(#"saltern_http_requests_total{route="GET /v1/items/{id}",status="4xx"} 1"#))
            #expect(text.contains("saltern_tls_handshakes_total 1\n"))
            #expect(text.contains("saltern_connections 1\n"))
        }
    }

    @Test func `the server refuses a schema that is older than itself`() async throws {
        let directory = try TemporaryDirectory()
        let certificates = CertificateDirectory(path: directory.path + "/tls")
        _ = try certificates.create(hosts: [Host("localhost")])
        let masterKey = MasterKeyFile(path: directory.path + "/master.key")
        _ = try masterKey.create()
        try await TemporaryDatabase.with(migrations: []) { database in
            let configuration = try ServeConfiguration(
                [
                    "SALTERN_DATABASE_URL": database.administratorURL, "SALTERN_TLS_DIRECTORY": certificates.path,
                    "SALTERN_LISTEN": "127.0.0.1:0", "SALTERN_SALT_PREFIX": "a:",
                    "SALTERN_MASTER_KEY_FILE": masterKey.path,
                ], coreCount: 1)
            let log = Log(minimumLevel: .debug, sink: CapturedLog()) { UTCTimestamp(microsecondsSinceEpoch: 0) }
            await #expect(throws: MigrationError.self) {
                _ = try await RunningServer.start(configuration, log: log, onTakeover: {})
            }
        }
    }
}
