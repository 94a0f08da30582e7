import Postgres
import SalternTesting
import Testing

/// Prepared statements that the server refuses, loses or outgrows: nobody but the request concerned hears of it.
@Suite(.timeLimit(.minutes(60))) struct PreparationTests {
    private struct LockNote: Statement {
        typealias Row = Int32
        static let sql: SQL<Self> = "SELECT id FROM public.notes WHERE id = \(\.id) FOR UPDATE"
        let id: Int32
    }

    private struct RewriteNote: Statement {
        typealias Row = Void
        static let sql: SQL<Self> = "UPDATE public.notes SET body = body WHERE id = \(\.id)"
        let id: Int32
    }

    /// Its result changes with the table.
    private struct AllOfNotes: Statement {
        typealias Row = Int32
        static let sql: SQL<Self> = "SELECT * FROM public.notes ORDER BY id"
    }

    private struct DeallocateAll: Statement {
        typealias Row = Void
        static let sql: SQL<Self> = "DEALLOCATE ALL"
    }

    private struct CountPrepared: Statement {
        typealias Row = Int64
        static let sql: SQL<Self> = "SELECT count(*) FROM pg_prepared_statements"
    }

    private static let schema = AddNote.schema + "; INSERT INTO public.notes VALUES (1, ''), (2, '')"

    private static func onOneConnection(_ configuration: inout PostgresConfiguration) {
        configuration.readConnections = 1
        configuration.commitConnections = 1
    }

    /// The order of events that once broke a statement for every request until the next start: a lock time-out before
    /// a preparation, a request that waits behind it, and another preparation before that one's error is known.
    @Test func `a lock that times out in front of a preparation breaks nothing for those who come later`() async throws
    {
        let answers = try await withDatabase(Self.schema) {
            Self.onOneConnection(&$0)
            $0.sharedLockTimeout = .seconds(2)
            $0.lockTimeout = .seconds(2)
        } _: { client in
            try await client.withTransaction { holder in
                _ = try await holder.execute(LockNote(id: 1))
                let requests = (0..<3).map { number in
                    Task(executorPreference: client.loop) {
                        try await Task.sleep(for: .milliseconds(300 * number))
                        // The last one comes when the first has failed and the second waits in its place.
                        if number == 2 { try await Task.sleep(for: .milliseconds(2_000)) }
                        _ = try await client.execute(LockNote(id: 1), RewriteNote(id: 1))
                    }
                }
                _ = await requests[0].result
                try await Task.sleep(for: .milliseconds(1_000))
                _ = try await holder.execute(LockNote(id: 1))
                // The lock goes with this transaction's end; the others follow.
                Task(executorPreference: client.loop) { for request in requests { _ = await request.result } }
            }
            var answers = 0
            for _ in 0..<3 {
                let (locked, _) = try await client.execute(LockNote(id: 2), RewriteNote(id: 2))
                answers += locked.count
            }
            return answers
        }
        #expect(answers == 3)
    }

    @Test func `a statement goes on after the schema has changed under it, on the same connection`() async throws {
        let (rows, isSame) = try await withDatabase(Self.schema) {
            Self.onOneConnection(&$0)
        } _: { client in
            let before = try await client.execute(AllOfNotes(), BackendID()).1
            try await client.withTransaction { _ = try await $0.execute(AddColumn()) }
            var rows: [[Int32]] = []
            for _ in 0..<3 { rows.append(try await client.execute(AllOfNotes())) }
            return (rows, try await client.execute(BackendID()) == before)
        }
        #expect(rows == Array(repeating: [1, 2], count: 3))
        #expect(isSame)
    }

    private struct AddColumn: Statement {
        typealias Row = Void
        static let sql: SQL<Self> = "ALTER TABLE public.notes ADD COLUMN more text"
    }

    @Test func `a session that was made to forget its statements prepares them again`() async throws {
        let (rows, count, isSame) = try await withDatabase(Self.schema) {
            Self.onOneConnection(&$0)
        } _: { client in
            let before = try await client.execute(BackendID())
            for _ in 0..<20 {
                _ = try await client.execute(AllOfNotes())
                _ = try await client.execute(DeallocateAll())
                // Four statements at once: each of them is gone.
                _ = try await client.execute(LockNote(id: 1), RewriteNote(id: 1), AllOfNotes(), BackendID())
            }
            let rows = try await client.execute(AllOfNotes())
            return (rows, try await client.execute(CountPrepared()), try await client.execute(BackendID()) == before)
        }
        #expect(rows == [1, 2])
        #expect(count[0] < 10, "nothing is left behind under old names")
        #expect(isSame)
    }

    @Test(arguments: PropertyTests.databases)
    func `whatever happens to a pipeline, every statement works afterwards`(seed: UInt64) async throws {
        let rows = try await withDatabase(Self.schema) {
            $0.readConnections = 2
            $0.commitConnections = 2
            $0.leasedConnections = 2
            $0.lockTimeout = .milliseconds(50)
            $0.acquireTimeout = .seconds(10)
            $0.backOff = .milliseconds(10)...(.milliseconds(50))
        } _: { client in
            await withTaskGroup(of: Void.self) { group in
                for worker in 0..<8 as Range<UInt64> {
                    group.addTask(executorPreference: client.loop) {
                        var random = SeededGenerator(seed: seed * 100 + worker)
                        for _ in 0..<60 { await Self.disturb(client, &random) }
                    }
                }
            }
            var rows: [[Int32]] = []
            // More of them than connections, so that each has its turn.
            while rows.count < 12 {
                do throws(PostgresError) {
                    let (all, _, _) = try await client.execute(AllOfNotes(), LockNote(id: 1), RewriteNote(id: 2))
                    rows.append(all)
                } catch {
                    // A backend that was told to end may do so only now.
                    guard error.isTransient else { throw error }
                }
            }
            return rows
        }
        #expect(rows.count == 12 && rows.allSatisfy { $0.starts(with: [1, 2]) })
    }

    /// One of the things that can happen to connections and statements.
    private static func disturb(_ client: PostgresClient, _ random: inout SeededGenerator) async {
        let id = Int32.random(in: 1...2, using: &random)
        let choice = Int.random(in: 0..<20, using: &random)
        let patience = Duration.milliseconds(Int.random(in: 0...40, using: &random))
        do {
            switch choice {
            case 0: _ = try await client.execute(DeallocateAll())
            case 1: _ = try await client.execute(LockNote(id: id), Divide(divisor: 0), RewriteNote(id: id))
            case 2:
                let task = Task(executorPreference: client.loop) {
                    _ = try await client.execute(LockNote(id: id), RewriteNote(id: id))
                }
                await Task.yield()
                task.cancel()
            case 3:
                try await client.withTransaction { transaction in
                    _ = try await transaction.execute(LockNote(id: id))
                    try await Task.sleep(for: patience)
                }
            case 4: try await client.withTransaction { _ = try await $0.execute(ChangeType()) }
            case 5:
                if Int.random(in: 0..<4, using: &random) == 0 {
                    _ = try await client.withConnection { try await $0.execute(TerminateOthers()) }
                }
            case 6: _ = try await client.execute(AddNote(id: id))
            case 7...10: _ = try await client.execute(AllOfNotes())
            case 11...14:
                let key = RequestKey(.account, UUID(high: 0, low: UInt64(id)))
                _ = try await client.execute(LockNote(id: id), RewriteNote(id: id), key: key)
            default: _ = try await client.execute(LockNote(id: id), RewriteNote(id: id), AllOfNotes())
            }
        } catch {
            // What fails here is no matter; what fails afterwards is.
        }
    }

    /// Changes the type of a column back and forth.
    private struct ChangeType: Statement {
        typealias Row = Void
        static let sql: SQL<Self> = """
            DO $$ BEGIN
                IF (SELECT data_type FROM information_schema.columns
                    WHERE table_schema = 'public' AND table_name = 'notes' AND column_name = 'body') = 'text'
                THEN ALTER TABLE public.notes ALTER COLUMN body TYPE varchar(100);
                ELSE ALTER TABLE public.notes ALTER COLUMN body TYPE text;
                END IF;
            END $$
            """
    }
}
