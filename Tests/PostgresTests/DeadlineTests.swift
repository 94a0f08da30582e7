import EventLoop
import SalternTesting
import Testing

@testable import Postgres

/// Until when a request is sent again that has failed for a reason of which it may be free the next time.
@Suite(.timeLimit(.minutes(60))) struct DeadlineTests {
    /// How often it was sent; it errs until it was sent more often than there are errors, and takes its time for the last.
    struct Attempt: Statement {
        typealias Row = Int64
        let errors: [String]
        static let sql: SQL<Self> = "SELECT public.attempt(\(\.errors))"
    }

    /// The same as a request that only reads: the client takes the statement's word for it.
    struct ReadingAttempt: Statement {
        typealias Row = Int64
        let errors: [String]
        static let isReadOnly = true
        static let sql: SQL<Self> = "SELECT public.attempt(\(\.errors))"
    }

    struct GroupedAttempt: Statement {
        typealias Row = Int64
        let errors: [String]
        var bytesInGroup: Int? { 100 }
        static let sql: SQL<Self> = "SELECT public.attempt(\(\.errors))"
    }

    struct Neighbour: Statement {
        typealias Row = Int64
        var bytesInGroup: Int? { 100 }
        static let sql: SQL<Self> = "SELECT nextval('public.neighbours')"
    }

    struct Counts: Statement {
        static let sql: SQL<Self> = "SELECT a.last_value, n.last_value FROM public.attempts a, public.neighbours n"
        static func decode(_ row: inout RowReader) throws(PostgresError) -> (attempts: Int64, neighbours: Int64) {
            (try row.next(), try row.next())
        }
    }

    // A sequence goes on also where the transaction does not.
    private static let schema = """
        CREATE SEQUENCE public.attempts MINVALUE 0 START 0;
        CREATE SEQUENCE public.neighbours MINVALUE 0 START 0;
        SELECT nextval('public.attempts'), nextval('public.neighbours');
        CREATE FUNCTION public.attempt(errors text[]) RETURNS bigint LANGUAGE plpgsql AS $$
            DECLARE number bigint := nextval('public.attempts');
            BEGIN
                IF number > cardinality(errors) THEN RETURN number; END IF;
                IF number = cardinality(errors) THEN PERFORM pg_sleep(2.5); END IF;
                RAISE EXCEPTION 'made' USING ERRCODE = errors[number];
            END $$
        """

    private static func within(_ time: Duration) -> @Sendable (inout PostgresConfiguration) -> Void {
        { configuration in
            configuration.readConnections = 1
            configuration.commitConnections = 1
            configuration.commitPatience = .seconds(60)
            configuration.acquireTimeout = time
        }
    }

    private static func isUnavailable(_ error: (any Error)?) -> Bool {
        if case PostgresError.unavailable? = error { true } else { false }
    }

    /// What somebody met: a lock, or that what he had prepared is gone.
    private static let mishaps = [["55P03"], ["26000"], ["55P03", "26000"]]

    @Test(arguments: mishaps) func `within its time a request is sent once more`(_ errors: [String]) async throws {
        let count = try await withDatabase(Self.schema, Self.within(.seconds(120))) { client in
            try await client.execute(Attempt(errors: errors), key: GroupTests.key(1)).first
        }
        #expect(count == Int64(errors.count + 1))
    }

    @Test(arguments: mishaps) func `after its time a request is not sent once more`(_ errors: [String]) async throws {
        let (error, count) = try await withDatabase(Self.schema, Self.within(.seconds(2))) { client in
            // There is a lease, for which nobody has to wait.
            try await eventually {
                (try? await client.withTransaction { try await $0.execute(Echo(value: true)) }) != nil
            }
            try await eventually { client.isReady }
            let result = await Task(executorPreference: client.loop) {
                try await client.execute(Attempt(errors: errors), key: GroupTests.key(1))
            }.result
            return (Self.error(result), try await Self.counts(client).attempts)
        }
        #expect(Self.isUnavailable(error), "\(String(describing: error))")
        #expect(count <= errors.count)
    }

    @Test func `after its time a request that reads is not sent once more`() async throws {
        let (error, count) = try await withDatabase(Self.schema, Self.within(.seconds(2))) { client in
            try await eventually { client.isReady }
            let result = await Task(executorPreference: client.loop) {
                try await client.execute(ReadingAttempt(errors: ["26000"]))
            }.result
            return (Self.error(result), try await Self.counts(client).attempts)
        }
        #expect(Self.isUnavailable(error), "\(String(describing: error))")
        #expect(count <= 1)
    }

    @Test func `after their time the members of a group that failed are not sent alone`() async throws {
        let (errors, counts) = try await withDatabase(Self.schema, Self.within(.seconds(2))) { client in
            try await eventually { client.isReady }
            let first = Task(executorPreference: client.loop) {
                try await client.execute(Neighbour(), key: GroupTests.key(0))
            }
            // These come while the first one is under way.
            let offender = Task(executorPreference: client.loop) {
                try await client.execute(GroupedAttempt(errors: ["22012"]), key: GroupTests.key(1))
            }
            let neighbour = Task(executorPreference: client.loop) {
                try await client.execute(Neighbour(), key: GroupTests.key(2))
            }
            _ = await first.result
            let errors = [Self.error(await offender.result), Self.error(await neighbour.result)]
            return (errors, try await Self.counts(client))
        }
        #expect(errors.allSatisfy(Self.isUnavailable), "\(errors)")
        #expect(counts.attempts <= 1 && counts.neighbours <= 2)
    }

    private static func error(_ result: Result<[Int64], any Error>) -> (any Error)? {
        if case .failure(let error) = result { error } else { nil }
    }

    /// Asked as long as it takes: what was under way may have cost a connection.
    private static func counts(_ client: PostgresClient) async throws -> (attempts: Int64, neighbours: Int64) {
        var counts: (attempts: Int64, neighbours: Int64)?
        try await eventually {
            counts = try? await client.execute(Counts()).first
            return counts != nil
        }
        return counts ?? (0, 0)
    }
}
