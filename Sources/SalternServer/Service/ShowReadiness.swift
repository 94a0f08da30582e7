internal import HTTPCore
internal import Postgres

/// `GET /v1/health/ready`: the database answers, and its schema is the one that this program was built for.
struct ShowReadiness: OpenEndpoint {
    let database: PostgresClient

    /// How long the database may take.
    private static let deadline = Duration.seconds(2)

    private let response: Response = .json { writer in
        writer.object { writer in writer.member("status", "ready") }
    }

    func respond(to request: Request) async throws -> Response {
        guard let version = try await schemaVersion() else { throw NotReady.databaseIsSlow }
        guard version == Schema.version else { throw NotReady.schemaDiffers }
        return response
    }

    /// The version of the database's schema; nil when it does not say so in time.
    private func schemaVersion() async throws -> Int? {
        try await withThrowingTaskGroup(of: Int?.self) { [database] group in
            group.addTask { try await database.execute(ReadSchemaVersion()).first ?? 0 }
            group.addTask {
                try await Task.sleep(for: Self.deadline)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }
}

/// Why the service is not ready.
enum NotReady: ProblemConvertible {
    case databaseIsSlow
    case schemaDiffers

    var problem: Problem {
        switch self {
        case .databaseIsSlow:
            Problem(
                .serviceUnavailable, "database_unavailable", detail: "The database did not answer in time.",
                responseFields: ["Retry-After": "5"])
        case .schemaDiffers:
            Problem(
                .serviceUnavailable, "schema_mismatch", detail: "The database has another schema version.",
                responseFields: ["Retry-After": "60"])
        }
    }
}
