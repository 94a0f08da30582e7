import EventLoop
import SalternTesting
import Testing

@testable import Postgres

/// Requests that share transactions, with PostgreSQL.
@Suite(.timeLimit(.minutes(60))) struct GroupTests {
    /// Adds to a counter, and says in which transaction.
    struct Increment: Statement {
        let id: Int32
        /// What the counter is divided by besides: an error at will.
        var divisor: Int32 = 1

        var bytesInGroup: Int? { 100 }
        static let sql: SQL<Self> = """
            UPDATE public.counters SET value = value + 1 / \(\.divisor) WHERE id = \(\.id)
            RETURNING value, pg_current_xact_id()::text::bigint
            """
        static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
            Row(value: try row.next(), transaction: try row.next())
        }
        struct Row: Sendable {
            let value: Int32
            let transaction: Int64
        }
    }

    /// A row that has to be another one when the transaction ends.
    struct AddLate: Statement {
        typealias Row = Void
        let id: Int32
        var bytesInGroup: Int? { 100 }
        static let sql: SQL<Self> = "INSERT INTO public.late (id) VALUES (\(\.id))"
    }

    struct Values: Statement {
        typealias Row = Int32
        static let isReadOnly = true
        static let sql: SQL<Self> = "SELECT value FROM public.counters ORDER BY id"
    }

    struct LateCount: Statement {
        typealias Row = Int64
        static let isReadOnly = true
        static let sql: SQL<Self> = "SELECT count(*) FROM public.late"
    }

    struct Touch: Statement {
        typealias Row = Int32
        let id: Int32
        static let sql: SQL<Self> = "UPDATE public.counters SET value = value WHERE id = \(\.id) RETURNING id"
    }

    static let schema = """
        CREATE TABLE public.counters (id integer PRIMARY KEY, value integer NOT NULL);
        INSERT INTO public.counters SELECT number, 0 FROM generate_series(0, 63) AS number;
        CREATE TABLE public.late (id integer, UNIQUE (id) DEFERRABLE INITIALLY DEFERRED)
        """

    static func key(_ id: Int32) -> RequestKey { RequestKey(.account, UUID(high: 0, low: UInt64(id))) }

    static func commits(_ count: Int) -> @Sendable (inout PostgresConfiguration) -> Void {
        { configuration in
            configuration.readConnections = 1
            configuration.commitConnections = count
            configuration.leasedConnections = 3
            configuration.backOff = .milliseconds(5)...(.milliseconds(20))
            // Nobody else is there, and a busy machine stalls for longer than five.
            configuration.sharedLockTimeout = .seconds(20)
        }
    }

    /// What came of many increments at once.
    static func increment(
        _ client: PostgresClient, _ statements: [Increment]
    ) async -> [Result<Increment.Row, any Error>] {
        let tasks = statements.map { statement in
            Task(executorPreference: client.loop) {
                guard let row = try await client.execute(statement, key: key(statement.id)).first else {
                    throw PostgresError.connectionLost
                }
                return row
            }
        }
        var results: [Result<Increment.Row, any Error>] = []
        for task in tasks { results.append(await task.result) }
        return results
    }

    @Test func `what comes while a commit is under way goes out together, sixteen at a time`() async throws {
        let (rows, values) = try await withDatabase(Self.schema, Self.commits(1)) { client in
            let results = await Self.increment(client, (0..<64).map { Increment(id: $0) })
            return (try results.map { try $0.get() }, try await client.execute(Values()))
        }
        #expect(values == Array(repeating: 1, count: 64))
        let sizes = Dictionary(grouping: rows, by: \.transaction).mapValues(\.count)
        #expect(sizes.count < 16 && sizes.values.allSatisfy { $0 <= 16 }, "\(sizes)")
    }

    /// What plpgsql says, and what a function of the server's does, as an extension would.
    @Test(arguments: ["RAISE WARNING 'the counter moves'", "PERFORM pg_cancel_backend(2147483647)"])
    func `what a trigger warns of is no word about a commit, also while it commits`(_ act: String) async throws {
        let warning = """
            ;
            CREATE FUNCTION public.warn() RETURNS trigger LANGUAGE plpgsql
                AS $$ BEGIN \(act); RETURN NEW; END $$;
            CREATE TRIGGER warn BEFORE UPDATE ON public.counters FOR EACH ROW WHEN (NEW.id = 5)
                EXECUTE FUNCTION public.warn();
            CREATE CONSTRAINT TRIGGER warn_later AFTER UPDATE ON public.counters DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW WHEN (NEW.id > 40) EXECUTE FUNCTION public.warn()
            """
        let values = try await withDatabase(Self.schema + warning, Self.commits(1)) { client in
            for result in await Self.increment(client, (0..<64).map { Increment(id: $0) }) { _ = try result.get() }
            return try await client.execute(Values())
        }
        #expect(values == Array(repeating: 1, count: 64))
    }

    @Test func `a request that nobody waits with is a transaction of its own`() async throws {
        let rows = try await withDatabase(Self.schema, Self.commits(2)) { client in
            var rows: [Increment.Row] = []
            for id in 0..<8 as Range<Int32> { rows += try await client.execute(Increment(id: id), key: Self.key(id)) }
            return rows
        }
        #expect(Set(rows.map(\.transaction)).count == 8)
    }

    @Test(arguments: [1, 2]) func `one key comes many times, also in one group, and sees what came before`(
        connections: Int
    ) async throws {
        let (rows, values) = try await withDatabase(Self.schema, Self.commits(connections)) { client in
            let results = await Self.increment(client, (0..<60).map { _ in Increment(id: 7) })
            return (try results.map { try $0.get() }, try await client.execute(Values()))
        }
        #expect(rows.map(\.value).sorted() == Array(1...60))
        #expect(values[7] == 60)
        #expect(Set(rows.map(\.transaction)).count < 30, "they share transactions")
    }

    @Test func `an error is that of its own request, and no neighbour's answer changes`() async throws {
        let (results, values) = try await withDatabase(Self.schema, Self.commits(1)) { client in
            let statements = (0..<64).map { Increment(id: $0, divisor: $0 % 5 == 0 ? 0 : 1) }
            return (await Self.increment(client, statements), try await client.execute(Values()))
        }
        for (id, result) in results.enumerated() {
            switch result {
            case .success(let row): #expect(id % 5 != 0 && row.value == 1)
            case .failure(let error):
                #expect(id % 5 == 0 && (error as? PostgresError)?.sqlState == .divisionByZero, "\(error)")
            }
        }
        #expect(values.enumerated().allSatisfy { $0.element == ($0.offset % 5 == 0 ? 0 : 1) })
    }

    @Test func `when the commit itself fails, each is done alone and hears its own answer`() async throws {
        let (outcomes, late, values) = try await withDatabase(Self.schema, Self.commits(1)) { client in
            let tasks = (0..<40).map { number in
                Task(executorPreference: client.loop) { () throws -> Void in
                    if number % 4 == 0 {
                        // Of each two of these one has to fail, at the end of its transaction.
                        let id = Int32(number / 8)
                        _ = try await client.execute(AddLate(id: id), key: Self.key(100 + Int32(number)))
                    } else {
                        let id = Int32(number)
                        _ = try await client.execute(Increment(id: id), key: Self.key(id))
                    }
                }
            }
            var outcomes: [Bool] = []
            for task in tasks {
                switch await task.result {
                case .success: outcomes.append(true)
                case .failure(let error):
                    #expect((error as? PostgresError)?.sqlState == .uniqueViolation)
                    outcomes.append(false)
                }
            }
            return (outcomes, try await client.execute(LateCount()).first, try await client.execute(Values()))
        }
        for number in 0..<40 where number % 4 != 0 { #expect(outcomes[number] && values[number] == 1) }
        #expect(late == 5)
        #expect((0..<40).count { $0 % 4 == 0 && outcomes[$0] } == 5)
    }

    @Test func `whoever meets a lock in a group waits alone, and its neighbours are done meanwhile`() async throws {
        let configure = Self.commits(1)
        let values = try await withDatabase(
            Self.schema,
            { configuration in
                configure(&configuration)
                configuration.sharedLockTimeout = .milliseconds(5)
            }
        ) { client in
            var held: [Task<Void, any Error>] = []
            try await client.withTransaction { holder in
                _ = try await holder.execute(Touch(id: 1))
                for _ in 0..<10 {
                    held.append(
                        Task(executorPreference: client.loop) {
                            _ = try await client.execute(Increment(id: 1), key: Self.key(1))
                        })
                }
                // None of these returns while the lock is held, if it waits for it.
                for _ in 0..<5 {
                    for result in await Self.increment(client, (2..<40).map { Increment(id: $0) }) {
                        _ = try result.get()
                    }
                }
                #expect(client.pool.slots.count { if case .leased = $0.phase { true } else { false } } <= 2)
            }
            for task in held { try await task.value }
            return try await client.execute(Values())
        }
        #expect(values[1] == 10)
        #expect(values[2..<40].allSatisfy { $0 == 5 })
    }

    @Test func `those who hold a key together and meet its lock wait one behind the other, and take one lease`()
        async throws
    {
        let configure = Self.commits(1)
        let (leases, values) = try await withDatabase(
            Self.schema,
            { configuration in
                configure(&configuration)
                configuration.sharedLockTimeout = .milliseconds(5)
            }
        ) { client in
            func increment(_ id: Int32) -> Task<Void, any Error> {
                Task(executorPreference: client.loop) {
                    _ = try await client.execute(Increment(id: id), key: Self.key(1))
                }
            }
            func leases() -> Int { client.pool.slots.count { if case .leased = $0.phase { true } else { false } } }
            var tasks: [Task<Void, any Error>] = []
            let most = try await client.withTransaction { holder in
                _ = try await holder.execute(Touch(id: 1))
                // While the first is under way, which wants another row, the others come; then they hold the key together.
                tasks = [increment(2)] + (0..<9).map { _ in increment(1) }
                try await eventually { client.keys.counts == (held: 1, waiting: 8) || leases() > 2 }
                let most = leases()
                for id in 3..<20 as Range<Int32> { _ = try await client.execute(Increment(id: id), key: Self.key(id)) }
                return most
            }
            for task in tasks { try await task.value }
            return (most, try await client.execute(Values()))
        }
        #expect(leases <= 2)
        #expect(values[1] == 9 && values[2] == 1)
    }

    @Test func `groups of two nodes that want the same rows in other orders wait for nobody for ever`() async throws {
        try await TemporaryDatabase.with(migrations: [Migration(version: 1, name: "test", sql: Self.schema)]) {
            database in
            let configure = Self.commits(2)
            let short: @Sendable (inout PostgresConfiguration) -> Void = { configuration in
                configure(&configuration)
                configuration.sharedLockTimeout = .milliseconds(5)
            }
            let url = database.administratorURL
            let work: @Sendable (PostgresClient) async throws -> Int = { client in
                var done = 0
                for _ in 0..<10 {
                    let statements = (0..<40).map { _ in Increment(id: Int32.random(in: 0..<12)) }
                    for result in await Self.increment(client, statements) {
                        _ = try result.get()
                        done += 1
                    }
                }
                return done
            }
            async let first = withClient(short, url: url, work)
            async let second = withClient(short, url: url, work)
            #expect(try await first + second == 800)
            let values = try await withClient(url: url) { try await $0.execute(Values()) }
            #expect(values.reduce(0, +) == 800)
        }
    }

    @Test func `when connections are lost at any moment, what was told to be done is there, and nothing twice`()
        async throws
    {
        let (told, doubtful, values) = try await withDatabase(Self.schema, Self.commits(2)) { client in
            var told = Array(repeating: 0, count: 64)
            var doubtful = told
            for _ in 0..<30 {
                let killer = Task(executorPreference: client.loop) {
                    try? await Task.sleep(for: .microseconds(.random(in: 0..<6_000)))
                    _ = try? await client.withTransaction { try await $0.execute(TerminateOthers()) }
                }
                let statements = (0..<40).map { _ in Increment(id: .random(in: 0..<64)) }
                for (statement, result) in zip(statements, await Self.increment(client, statements)) {
                    switch result {
                    case .success: told[Int(statement.id)] += 1
                    case .failure(PostgresError.connectionLost): doubtful[Int(statement.id)] += 1
                    case .failure(let error): #expect((error as? PostgresError)?.isTransient == true, "\(error)")
                    }
                }
                await killer.value
            }
            while true {
                if let values = try? await client.execute(Values()) { return (told, doubtful, values) }
            }
        }
        for id in 0..<64 { #expect((told[id]...told[id] + doubtful[id]).contains(Int(values[id])), "\(id)") }
        #expect(told.reduce(0, +) > 100)
    }
}
