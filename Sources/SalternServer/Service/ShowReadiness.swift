internal import HTTPCore
internal import Postgres

/// `GET /v1/health/ready`: the database answers, and its schema is one that this program works with.
///
/// Anybody may ask as often as they like: the database is asked once a second at most.
struct ShowReadiness: OpenEndpoint {
    let database: PostgresClient
    let readiness: Readiness

    /// How long the database may take.
    private static let deadline = Duration.seconds(2)

    private let response: Response = .json { writer in
        writer.object { writer in writer.member("status", "ready") }
    }

    func respond(to request: Request) async throws -> Response {
        let answer = await readiness.answer(on: database.loop) { [database] in await Self.ask(database) }
        switch answer {
        case .schema(fits: true): return response
        case .schema: throw NotReady.schemaDiffers
        case .silence, nil: throw NotReady.databaseIsSlow
        case .failure(let error): throw error
        }
    }

    private static func ask(_ database: PostgresClient) async -> Readiness.Answer {
        await withTaskGroup(of: Readiness.Answer.self) { group in
            group.addTask {
                do throws(PostgresError) {
                    return .schema(fits: try await database.execute(ReadSchemaVersion()).first ?? false)
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                try? await Task.sleep(for: deadline)
                return .silence
            }
            defer { group.cancelAll() }
            return await group.next() ?? .silence
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
