internal import Cryptography
internal import EventLoop
internal import Postgres

extension TemporaryDatabase {
    /// Makes a copy of the database as it is, as a backup that is restored is one, lends it to `body`, and drops it. Nobody
    /// may be connected to the original while it is copied.
    public func withCopy<Result: Sendable>(
        _ body: (TemporaryDatabase) async throws -> Result
    ) async throws -> Result {
        let copyName = "saltern_test_" + Hex.encode(SecureRandom.bytes(8))
        let loop = try EventLoop(name: "test database")
        try loop.start()
        defer { loop.stop() }
        let administration = try PostgresConfiguration.patient(TestEnvironment.administratorURL())
        try await PostgresScript.runPatiently(
            [DatabaseMaker.create(copyName, from: name)], configuration: administration, loop: loop)
        let copy = TemporaryDatabase(
            name: copyName, administratorURL: administratorURL.replacing(name, with: copyName),
            ownerURL: ownerURL.replacing(name, with: copyName), serverURL: serverURL.replacing(name, with: copyName))
        let drop = "DROP DATABASE IF EXISTS \(copyName) WITH (FORCE)"
        do {
            let result = try await body(copy)
            try await PostgresScript.runPatiently([drop], configuration: administration, loop: loop)
            return result
        } catch {
            try? await PostgresScript.runPatiently([drop], configuration: administration, loop: loop)
            throw error
        }
    }
}
