internal import HTTPCore
internal import Postgres

/// `GET /v1/health/ready`: the database answers, and its schema is one that this program works with.
///
/// Of a cluster some node may be gone: then the service is degraded and goes on, for everybody whose rows are elsewhere.
///
/// Anybody may ask as often as they like: the database is asked once a second at most.
struct ShowReadiness: OpenEndpoint {
    let database: PostgresClient
    let readiness: Readiness

    /// How long the database may take.
    private static let deadline = Duration.seconds(2)

    private let ready = Self.response("ready")
    private let degraded = Self.response("degraded")

    private static func response(_ status: String) -> Response {
        .json { writer in writer.object { writer in writer.member("status", status) } }
    }

    func respond(to request: Request) async throws -> Response {
        let answer = await readiness.answer(on: database.loop) { [database] in await Self.ask(database) }
        switch answer {
        case .schema(fits: true): return ready
        case .degraded: return degraded
        case .schema: throw NotReady.schemaDiffers
        case .silence, nil: throw NotReady.databaseIsSlow
        case .failure(let error): throw error
        }
    }

    private static func ask(_ database: PostgresClient) async -> Readiness.Answer {
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

    /// Whether all nodes answer that have a part of the accounts.
    private static func isWhole(_ database: PostgresClient) async -> Bool {
        guard database.isDistributed else { return true }
        return (try? await database.execute(ReadEveryNode())) != nil
    }
}

/// Asks whatever nodes there are. That it finds nothing is an answer too.
struct ReadEveryNode: Statement {
    typealias Row = Bool

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT true FROM saltern.recoveries LIMIT 1"
}

/// Why the service is not ready.
enum NotReady: ProblemConvertible {
    case databaseIsSlow
    case schemaDiffers
    /// The start of the server waits for the database.
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
