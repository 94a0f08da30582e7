internal import HTTPCore
internal import Postgres

/// `GET /v1/health/ready`: returns 200 if the database answers and the program works with its schema.
///
/// If a node of a cluster is missing, the status is `degraded`: the service continues for accounts on other nodes.
///
/// The route has no rate limit, because the database is queried at most once a second.
struct ShowReadiness: OpenEndpoint {
    let database: PostgresClient
    let readiness: Readiness

    private let ready = Self.response("ready")
    private let degraded = Self.response("degraded")

    private static func response(_ status: String) -> Response {
        .json { writer in writer.object { writer in writer.member("status", status) } }
    }

    func respond(to request: Request) async throws -> Response {
        let answer = await readiness.answer(on: database.loop) { [database, deadline = readiness.deadline] in
            await Self.ask(database, within: deadline)
        }
        switch answer {
        case .schema(fits: true): return ready
        case .degraded: return degraded
        case .schema: throw NotReady.schemaDiffers
        case .silence, nil: throw NotReady.databaseIsSlow
        case .failure(let error): throw error
        }
    }

    private static func ask(_ database: PostgresClient, within deadline: Duration) async -> Readiness.Answer {
        await withTaskGroup(of: Readiness.Answer.self) { group in
            group.addTask {
                do throws(PostgresError) {
                    let fits = try await database.execute(ReadSchemaVersion()).first == .fits
                    guard fits, await !Self.isWhole(database) else { return .schema(fits: fits) }
                    return .degraded
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

    /// Returns true if all nodes with accounts answer.
    private static func isWhole(_ database: PostgresClient) async -> Bool {
        guard database.isDistributed else { return true }
        return (try? await database.execute(ReadEveryNode())) != nil
    }
}

/// Sends a query to all nodes. An empty result is sufficient.
struct ReadEveryNode: Statement {
    typealias Row = Bool

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT true FROM saltern.recoveries LIMIT 1"
}

/// Reasons for which the service is not ready.
enum NotReady: ProblemConvertible {
    case databaseIsSlow
    case schemaDiffers
    /// The starting server waits for the database.
    case isStarting

    var problem: Problem {
        switch self {
        case .databaseIsSlow:
            Problem(
                .serviceUnavailable, "database_unavailable", detail: "The database did not answer in time.",
                responseFields: ["Retry-After": "5"])
        case .isStarting:
            Problem(
                .serviceUnavailable, "database_unavailable",
                detail: "The server is starting and waits for its database. Send the same request again.",
                responseFields: ["Retry-After": "5"])
        case .schemaDiffers:
            Problem(
                .serviceUnavailable, "schema_mismatch", detail: "The database has another schema version.",
                responseFields: ["Retry-After": "60"])
        }
    }
}
