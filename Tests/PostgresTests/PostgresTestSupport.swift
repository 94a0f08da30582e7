import EventLoop
import Postgres
import SalternTesting
import Synchronization
import Testing

/// Runs `body` on a loop with a client of the test server's own database `postgres`.
func withClient<Result: Sendable>(
    _ configure: @Sendable (inout PostgresConfiguration) -> Void = { _ in },
    url: String? = nil, keys: RequestKeys = RequestKeys(), epoch: ConnectionEpoch = ConnectionEpoch(),
    _ body: @escaping @Sendable (PostgresClient) async throws -> Result
) async throws -> Result {
    let url = try url ?? TestEnvironment.administratorURL()
    var configuration = try PostgresConfiguration.patient(url)
    configuration.searchPath = "pg_temp, public"
    configure(&configuration)
    let settled = configuration
    let loop = try EventLoop(name: "test")
    try loop.start()
    defer { loop.stop() }
    return try await loop.run {
        let client = PostgresClient(configuration: settled, loop: loop, keys: keys, epoch: epoch)
        do {
            let result = try await body(client)
            await client.shutdown()
            return result
        } catch {
            await client.shutdown()
            throw error
        }
    }
}

/// Runs `body` on a loop with a client of an empty database, as its superuser.
func withDatabase<Result: Sendable>(
    _ script: String = "",
    _ configure: @escaping @Sendable (inout PostgresConfiguration) -> Void = { _ in },
    _ body: @escaping @Sendable (PostgresClient) async throws -> Result
) async throws -> Result {
    let migrations = script.isEmpty ? [] : [Migration(version: 1, name: "test", sql: script)]
    return try await TemporaryDatabase.with(migrations: migrations) { database in
        try await withClient(configure, url: database.administratorURL, body)
    }
}

/// What a client says that is no request's result.
final class EventRecorder: Sendable {
    private let recorded = Mutex<[PostgresEvent]>([])
    var events: [PostgresEvent] { recorded.withLock { $0 } }
    func record(_ event: PostgresEvent) { recorded.withLock { $0.append(event) } }
}

/// `SELECT $1`, with the value's type in PostgreSQL as Swift has it.
struct Echo<Value: PostgresValue & Sendable>: Statement {
    static var sql: SQL<Self> { "SELECT \(\.value)" }
    static var isReadOnly: Bool { true }
    let value: Value
    typealias Row = Value
}

/// 1 divided by the parameter: an error at will, SQLSTATE 22012.
struct Divide: Statement {
    typealias Row = Int32
    static let sql: SQL<Self> = "SELECT 1000 / \(\.divisor)"
    static let isReadOnly = true
    let divisor: Int32
}

struct Sleep: Statement {
    typealias Row = Void
    static let sql: SQL<Self> = "SELECT pg_sleep(\(\.seconds))"
    let seconds: Double
}

struct BackendID: Statement {
    typealias Row = Int32
    static let sql: SQL<Self> = "SELECT pg_backend_pid()"
}

/// Ends the connections of this database but the caller's own.
struct TerminateOthers: Statement {
    typealias Row = Bool
    static let sql: SQL<Self> = """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
        """
}

/// A row of the table `notes(id integer primary key, body text not null)`.
struct AddNote: Statement {
    typealias Row = Void
    static let schema = "CREATE TABLE public.notes (id integer CONSTRAINT notes_key PRIMARY KEY, body text NOT NULL)"
    static let sql: SQL<Self> = "INSERT INTO public.notes (id, body) VALUES (\(\.id), \(\.body))"
    let id: Int32
    var body: String? = "text"
}

struct NoteIDs: Statement {
    typealias Row = Int32
    static let sql: SQL<Self> = "SELECT id FROM public.notes ORDER BY id"
}
