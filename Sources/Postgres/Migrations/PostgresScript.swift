public import EventLoop

/// Administration by texts of SQL that the program itself composes; never with a value from outside.
public enum PostgresScript {
    /// Runs `scripts` in order on one connection of their own, each as one request of the simple protocol, so that
    /// `CREATE DATABASE` works as well as several statements in one text. Results are dropped.
    public static func run(
        _ scripts: [String], configuration: PostgresConfiguration, loop: EventLoop
    ) async throws(PostgresError) {
        @Sendable func outcome() async -> Result<Void, PostgresError> {
            do throws(PostgresError) {
                let connection = try await ScriptConnection.open(configuration, loop: loop)
                defer { connection.close() }
                for script in scripts { try await connection.run(script) }
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        return try await loop.running(cancelled: .cancelled, outcome).get()
    }
}

extension EventLoop {
    /// Runs `body` on the loop; `cancelled` is the outcome when the task ended before.
    func running<Success, Failure: Error>(
        cancelled: Failure, _ body: @escaping @Sendable () async -> Result<Success, Failure>
    ) async -> Result<Success, Failure> where Success: Sendable {
        do {
            return try await run { await body() }
        } catch {
            return .failure(cancelled)
        }
    }
}
