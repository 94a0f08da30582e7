import EventLoop
import Postgres
import SalternServer
import SalternTesting

/// A client of a test's database beside the application's own, on a loop of its own.
struct SeparateClient: Sendable {
    let postgres: PostgresClient
    private let loop: EventLoop

    /// Lends a client that connects to `url` and has as many connections for transactions as a test needs at once. Those for
    /// single statements are one of each kind: to open one is as much work as the rest of many a test.
    /// - Parameter watch: What looks at its connections, and the epoch that they are of.
    static func with<Result: Sendable>(
        _ url: String, transactions: Int = 1, watch: (DatabaseWatch, ConnectionEpoch)? = nil,
        _ body: (SeparateClient) async throws -> Result
    ) async throws -> Result {
        let loop = try EventLoop(name: "separate client")
        try loop.start()
        defer { loop.stop() }
        var settings = try PostgresConfiguration.patient(url)
        settings.readConnections = 1
        settings.commitConnections = 1
        settings.leasedConnections = transactions
        settings.onConnected = watch?.0.welcome
        let epoch = watch?.1 ?? ConnectionEpoch()
        let postgres = await loop.run { [settings] in
            PostgresClient(configuration: settings, loop: loop, epoch: epoch)
        }
        let client = SeparateClient(postgres: postgres, loop: loop)
        do {
            let result = try await body(client)
            await loop.run { await postgres.shutdown() }
            return result
        } catch {
            await loop.run { await postgres.shutdown() }
            throw error
        }
    }

    /// Runs `body` where the client may be used.
    func run<Result: Sendable>(
        _ body: @escaping @Sendable (PostgresClient) async throws -> Result
    ) async throws -> Result {
        let postgres = postgres
        return try await loop.run { try await body(postgres) }
    }
}
