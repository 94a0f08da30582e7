internal import EventLoop
internal import Postgres

extension TemporaryDatabase {
    /// Lends the same database with a proxy on the server's way to it; everybody else's is as it was.
    public func withProxy<Result: Sendable>(
        _ body: (TemporaryDatabase, CuttingProxy) async throws -> Result
    ) async throws -> Result {
        let loop = try EventLoop(name: "test database")
        try loop.start()
        defer { loop.stop() }
        let configuration = try PostgresConfiguration.patient(administratorURL)
        let paths = try await loop.run {
            let client = PostgresClient(configuration: configuration, loop: loop)
            do {
                let paths = try await client.execute(FindSocket())
                await client.shutdown()
                return paths
            } catch {
                await client.shutdown()
                throw error
            }
        }
        let proxy = try CuttingProxy(to: paths.first ?? "")
        defer { proxy.stop() }
        let proxied = TemporaryDatabase(
            name: name, administratorURL: administratorURL, ownerURL: ownerURL, serverURL: proxy.url(of: serverURL))
        return try await body(proxied, proxy)
    }
}

private struct FindSocket: Statement {
    typealias Row = String

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT split_part(current_setting('unix_socket_directories'), ',', 1) || '/.s.PGSQL.' || current_setting('port')
        """
}
