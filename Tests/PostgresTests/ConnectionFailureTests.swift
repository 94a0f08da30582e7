import Glibc
import SalternTesting
import Testing

@testable import Postgres

@Suite(.timeLimit(.minutes(60))) struct ConnectionFailureTests {
    @Test(arguments: [
        (
            #"connection to server at "127.0.0.1", port 5432 failed: FATAL:  28P01"# + "\n",
            ConnectionFailure.server(.invalidPassword)
        ),
        (
            """
            connection to server at "a" (10.0.0.1), port 5432 failed: Connection refused
            \tIs the server running on that host and accepting TCP/IP connections?
            connection to server at "b" (10.0.0.2), port 5432 failed: FATAL:  57P03

            """, .server(.cannotConnectNow)
        ),
        (
            #"connection to server at "db", port 5432 failed: SSL error: certificate verify failed"#,
            .tls(.untrustedCertificate)
        ),
        (
            #"connection to server at "db", port 5432 failed: server certificate for "other" does not match host name "db""#,
            .tls(.certificateOfAnotherHost)
        ),
        ("connection to server failed: server does not support SSL, but SSL was required", .tls(.notOffered)),
        (#"root certificate file "/x" does not exist"#, .tls(.missingRootCertificate)),
        ("connection to server failed: fe_sendauth: no password supplied", .passwordMissing),
        ("connection to server failed: session is read-only", .otherKindOfServer),
        ("connection to server failed: Connection timed out", .system(ETIMEDOUT)),
        ("connection to server on socket failed: No such file or directory", .system(ENOENT)),
        (#"invalid sslmode value: "certificate SSL""# + "\n", .option("sslmode")),
        (#"invalid port number: "99999""#, .option("port")),
        (#"invalid integer value "db" for connection option "keepalives_idle""#, .option("keepalives_idle")),
        ("could not match 2 port numbers to 3 hosts", .option("host")),
        ("could not match 2 host names to 3 hostaddr values", .option("host")),
        (#"definition of service "db" not found"#, .option("service")),
        ("something that nobody has thought of", .other),
    ])
    func `libpq's reports become codes`(message: String, failure: ConnectionFailure) {
        #expect(ConnectionFailure(message: message) == failure)
        #expect(!failure.description.contains("db"))
    }

    @Test(arguments: [
        ("/no_such_database", ConnectionFailure.server(.unknownDatabase)),
        ("?host=/nowhere", .system(ENOENT)),
        ("-c nosuch=1", .server(.undefinedObject)), ("-c statement_timeout=abc", .server(SQLState("22023"))),
        ("-c fsync=off", .server(SQLState("55P02"))), ("-q", .server(.syntaxError)),
    ])
    func `why a connection is not opened is said once, and to whoever waits for it`(
        change: String, failure: ConnectionFailure
    ) async throws {
        let recorder = EventRecorder()
        let administrator = try TestEnvironment.administratorURL()
        let url: String
        if change.hasPrefix("/") {
            url = administrator.replacing(/\/postgres$/, with: change)
        } else if change.hasPrefix("-") {
            let options = change.replacing(" ", with: "%20").replacing("=", with: "%3D")
            url = administrator + (administrator.contains("?") ? "&" : "?") + "options=\(options)"
            #expect(failure.isForGood && failure.description.contains("`options` of the database URL"))
        } else {
            url = "postgresql:///postgres" + change
        }
        let error = try await withClient(
            {
                $0.acquireTimeout = .milliseconds(800)
                $0.backOff = .milliseconds(10)...(.milliseconds(20))
                $0.observer = { recorder.record($0) }
            }, url: url
        ) { client in
            // The request may give up before a first connection has been tried.
            try await eventually { !recorder.events.isEmpty }
            return await #expect(throws: PostgresError.self) { _ = try await client.execute(Echo(value: true)) }
        }
        guard case .unavailable(_, let reason) = try #require(error) else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(reason == failure)
        #expect("\(try #require(error))".contains(failure.description))
        #expect(recorder.events == [.cannotConnect(failure)])
    }

    @Test func `a name that nobody has is the resolver's failure`() async throws {
        let recorder = EventRecorder()
        _ = try await withClient(
            {
                $0.acquireTimeout = .milliseconds(500)
                $0.connectTimeout = .seconds(120)
                $0.observer = { recorder.record($0) }
            }, url: "postgresql://host.invalid/postgres"
        ) { _ in try await eventually { !recorder.events.isEmpty } }
        guard case .cannotConnect(.resolver) = recorder.events.first else {
            Issue.record("\(recorder.events)")
            return
        }
    }

    @Test func `that connections are opened again is said once, too`() async throws {
        let recorder = EventRecorder()
        try await TemporaryCluster.with { cluster in
            try await withClient(
                {
                    $0.acquireTimeout = .milliseconds(200)
                    $0.backOff = .milliseconds(10)...(.milliseconds(50))
                    $0.observer = { recorder.record($0) }
                }, url: cluster.url
            ) { client in
                try await eventually { (try? await client.execute(Echo(value: true))) == [true] }
                #expect(recorder.events.isEmpty)
                try await cluster.stop(.fast)
                try await eventually { !recorder.events.isEmpty }
                try await cluster.start()
                try await eventually { (try? await client.execute(Echo(value: true))) == [true] }
                // A connection may still be refused after another one was opened. Then two more changes follow.
                try await eventually { recorder.events.last == .connected }
            }
        }
        let events = recorder.events
        #expect(events.first != .connected && events.contains(.connected))
        #expect(zip(events, events.dropFirst()).allSatisfy { $0 != $1 }, "\(events)")
    }
}
