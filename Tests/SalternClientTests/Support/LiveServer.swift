import Foundation
import HTTPCore
import HTTPServer
import Postgres
import SalternClient
import SalternServer
import SalternTesting
import Synchronization
import Testing
import TransportSecurity

@testable import saltern

/// A whole server, as `saltern serve` composes it, that clients of a test talk to.
final class LiveServer: Sendable {
    let certificates: CertificateDirectory
    let database: TemporaryDatabase
    private let directory: TemporaryDirectory
    private let environment: [String: String]
    private let running: Mutex<RunningServer>
    private let hasStopped = Mutex(false)

    static let saltPrefix = "com.example.test:"

    private init(
        _ environment: [String: String], _ database: TemporaryDatabase, _ directory: TemporaryDirectory,
        _ certificates: CertificateDirectory
    ) async throws {
        let server = try await Self.start(environment)
        self.database = database
        self.certificates = certificates
        self.directory = directory
        self.environment = environment
        running = Mutex(server)
    }

    static func with(_ changes: [String: String] = [:], _ body: (LiveServer) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        let certificates = CertificateDirectory(path: directory.path + "/tls")
        _ = try certificates.create(hosts: [Host("localhost")])
        let masterKey = MasterKeyFile(path: directory.path + "/master.key")
        _ = try masterKey.create()
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let environment = [
                "SALTERN_DATABASE_URL": database.serverURL, "SALTERN_TLS_DIRECTORY": certificates.path,
                "SALTERN_MASTER_KEY_FILE": masterKey.path, "SALTERN_LISTEN": "127.0.0.1:0",
                "SALTERN_METRICS_LISTEN": "127.0.0.1:0", "SALTERN_SALT_PREFIX": saltPrefix,
                "SALTERN_REGISTRATION": "open", "SALTERN_ALLOW_UNSAFE_DATABASE": "on", "SALTERN_LOOPS": "1",
                "SALTERN_READ_CONNECTIONS": "1", "SALTERN_COMMIT_CONNECTIONS": "1", "SALTERN_RATE_LIMITS": "off",
                "SALTERN_KDF_MINIMUM_ITERATIONS": "10000", "SALTERN_KDF_DEFAULT_ITERATIONS": "10000",
            ]
            let server = try await LiveServer(environment.merging(changes) { $1 }, database, directory, certificates)
            do {
                try await body(server)
            } catch {
                await server.stop(timeout: .milliseconds(1))
                throw error
            }
            await server.stop()
        }
    }

    private static func start(_ environment: [String: String]) async throws -> RunningServer {
        var configuration = try ServeConfiguration(environment, coreCount: 1)
        configuration.database.becomePatient()
        // One for long work and one for the rest. A connection is as much work as the rest of many a test.
        configuration.database.leasedConnections = 2
        configuration.http.becomePatient()
        let log = Log(minimumLevel: .error, sink: CapturedLog()) { UTCTimestamp(microsecondsSinceEpoch: 0) }
        return try await RunningServer.start(configuration, log: log, onTakeover: {})
    }

    var server: RunningServer { running.withLock { $0 } }

    /// Ends the server. ``restart(timeout:_:)`` starts it again.
    func stop(timeout: Duration = .seconds(10)) async {
        // It waits for what the first call has ended.
        let hadStopped = hasStopped.withLock { hasStopped in
            defer { hasStopped = true }
            return hasStopped
        }
        if !hadStopped { await server.stop(timeout: timeout) }
    }

    /// Ends the server and starts it again, at another port: somebody may have taken the old one meanwhile. What is under
    /// way longer than `timeout` is cut off.
    /// - Parameter changes: What is set otherwise this time.
    func restart(timeout: Duration, _ changes: [String: String] = [:]) async throws {
        await stop(timeout: timeout)
        let next = try await Self.start(environment.merging(changes) { $1 })
        running.withLock { $0 = next }
        hasStopped.withLock { $0 = false }
    }

    /// The pin of the key that the server shows, and that of the key that it would show next.
    func pins() throws -> (active: String, backup: String?) {
        let pins = try certificates.pins()
        return (pins.active.description, pins.backup?.description)
    }

    var base: String { "https://localhost:\(server.address.port)" }

    /// What a client has to know to trust the server.
    func address(pins: [String]? = nil) throws -> CurlTransport.Server {
        let anchor = try Data(contentsOf: URL(filePath: certificates.path + "/certificate.pem"))
        return CurlTransport.Server(
            base: base, pins: try pins ?? [self.pins().active], anchor: [UInt8](anchor))
    }

    func api() throws -> SalternAPI { SalternAPI(try CurlTransport(address())) }
}
