import Postgres
import SalternTesting
import Testing

@Suite(.timeLimit(.minutes(60))) struct TransactionTests {
    private struct Refused: Error {}

    @Test func `a transaction commits when its body returns`() async throws {
        let (value, ids) = try await withDatabase(AddNote.schema) { client in
            let value = try await client.withTransaction { transaction in
                _ = try await transaction.execute(AddNote(id: 1))
                _ = try await transaction.execute(AddNote(id: 2), AddNote(id: 3))
                return try await transaction.execute(NoteIDs())
            }
            return (value, try await client.execute(NoteIDs()))
        }
        #expect(value == [1, 2, 3])
        #expect(ids == [1, 2, 3])
    }

    @Test func `what is executed with the next statement is in the transaction, also when the commit is the next`()
        async throws
    {
        let (next, waited, ids) = try await withDatabase(AddNote.schema) { client in
            let (next, waited) = try await client.withTransaction { transaction in
                transaction.enqueue(AddNote(id: 1))
                transaction.enqueue(AddNote(id: 2))
                let next = try await transaction.execute(NoteIDs())
                transaction.enqueue(AddNote(id: 3))
                try await transaction.executeWaiting()
                let waited = try await transaction.execute(NoteIDs())
                transaction.enqueue(AddNote(id: 4))
                return (next, waited)
            }
            try await client.withTransaction { $0.enqueue(AddNote(id: 5)) }
            let error = await #expect(throws: PostgresError.self) {
                try await client.withTransaction { transaction in
                    _ = try await transaction.execute(AddNote(id: 6))
                    transaction.enqueue(AddNote(id: 5))
                }
            }
            #expect(error?.sqlState == .uniqueViolation)
            return (next, waited, try await client.execute(NoteIDs()))
        }
        #expect(next == [1, 2])
        #expect(waited == [1, 2, 3])
        #expect(ids == [1, 2, 3, 4, 5])
    }

    @Test func `a transaction rolls back when its body throws, and its connection serves the next one`() async throws {
        let (ids, first, second) = try await withDatabase(AddNote.schema) { client in
            var first: [Int32] = []
            await #expect(throws: Refused.self) {
                try await client.withTransaction { transaction in
                    _ = try await transaction.execute(AddNote(id: 1))
                    first = try await transaction.execute(BackendID())
                    throw Refused()
                }
            }
            let second = try await client.withTransaction { try await $0.execute(BackendID()) }
            return (try await client.execute(NoteIDs()), first, second)
        }
        #expect(ids.isEmpty)
        #expect(first == second)
    }

    @Test func `a transaction with an error that its body swallowed is not reported as committed`() async throws {
        let (error, ids) = try await withDatabase(AddNote.schema) { client in
            let error = await #expect(throws: PostgresError.self) {
                try await client.withTransaction { transaction in
                    _ = try await transaction.execute(AddNote(id: 1))
                    do { _ = try await transaction.execute(AddNote(id: 1)) } catch {}
                }
            }
            return (error, try await client.execute(NoteIDs()))
        }
        #expect(error?.sqlState == .inFailedTransaction)
        #expect(ids.isEmpty)
    }

    @Test func `a serializable transaction reports what it cannot serialise`() async throws {
        let state = try await withDatabase(AddNote.schema + "; INSERT INTO notes VALUES (1, '')") { client in
            let error = await #expect(throws: PostgresError.self) {
                try await client.withTransaction(isolation: .serializable) { outer in
                    let ids = try await outer.execute(NoteIDs())
                    try await client.withTransaction(isolation: .serializable) { inner in
                        let ids = try await inner.execute(NoteIDs())
                        _ = try await inner.execute(AddNote(id: ids.count == 1 ? 2 : 0))
                    }
                    _ = try await outer.execute(AddNote(id: ids.count == 1 ? 3 : 0))
                }
            }
            return error?.sqlState
        }
        #expect(state == .serializationFailure)
    }

    @Test func `leases do not starve statements, and more leases than connections take turns`() async throws {
        let (ids, answers) = try await withDatabase(AddNote.schema) {
            $0.readConnections = 1
            $0.commitConnections = 1
            $0.leasedConnections = 2
        } _: { client in
            let answers = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<6 as Range<Int32> {
                    group.addTask(executorPreference: client.loop) {
                        try await client.withTransaction { transaction in
                            _ = try await transaction.execute(AddNote(id: number))
                            // The transaction stays open while shared statements are answered.
                            let answers = try await client.execute(Echo(value: 1 as Int64))
                            _ = try await transaction.execute(Sleep(seconds: 0.02))
                            return answers.count
                        }
                    }
                }
                return try await group.reduce(0, +)
            }
            return (try await client.execute(NoteIDs()), answers)
        }
        #expect(ids == [0, 1, 2, 3, 4, 5])
        #expect(answers == 6)
    }

    @Test func `a lease keeps one session, which ends with it`() async throws {
        let pids = try await withClient {
            $0.leasedConnections = 1
        } _: { client in
            let first = try await client.withConnection { lease in
                try await lease.execute(BackendID()) + (try await lease.execute(BackendID()))
            }
            return first + (try await client.withConnection { try await $0.execute(BackendID()) })
        }
        #expect(pids.count == 3 && pids[0] == pids[1] && pids[1] != pids[2])
    }

    @Test(arguments: [(1_000_000, true), (1_100_000, false)])
    func `a connection that has carried a very long statement is not kept with what that took of memory`(
        byteCount: Int, isKept: Bool
    ) async throws {
        let (first, second) = try await withClient { client in
            let first = try await client.withTransaction { transaction in
                _ = try await transaction.execute(Echo(value: [UInt8](repeating: 1, count: byteCount)))
                return try await transaction.execute(BackendID())
            }
            return (first, try await client.withTransaction { try await $0.execute(BackendID()) })
        }
        #expect((first == second) == isKept)
    }

    @Test func `a transaction whose task is cancelled is rolled back`() async throws {
        let (wasCancelled, ids) = try await withDatabase(AddNote.schema + ";" + PassGate.schema) {
            $0.leasedConnections = 1
        } _: { client in
            let task = Task(executorPreference: client.loop) {
                try await client.withTransaction { transaction in
                    _ = try await transaction.execute(AddNote(id: 1))
                    _ = try await transaction.execute(PassGate())
                }
            }
            try await eventually { try await client.execute(SleepingBackends()) == [1] }
            task.cancel()
            let result = await task.result
            var wasCancelled = false
            if case .failure(let error as PostgresError) = result, case .cancelled = error { wasCancelled = true }
            _ = try await client.execute(OpenGate())
            // The only lease is free after the end of the transaction.
            return (wasCancelled, try await client.withTransaction { try await $0.execute(NoteIDs()) })
        }
        #expect(wasCancelled)
        #expect(ids.isEmpty)
    }
}

/// Waits until the gate is open. Unlike a sleep, it cannot end before the test has seen it, and takes no lock.
struct PassGate: Statement {
    typealias Row = Void
    static let schema = """
        CREATE TABLE public.gate ();
        CREATE FUNCTION public.pass_gate() RETURNS void LANGUAGE plpgsql AS $$
            BEGIN
                WHILE NOT EXISTS (SELECT FROM public.gate) LOOP PERFORM pg_sleep(0.1); END LOOP;
            END $$
        """
    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT public.pass_gate()"
}

struct OpenGate: Statement {
    typealias Row = Void
    static let sql: SQL<Self> = "INSERT INTO public.gate DEFAULT VALUES"
}

struct SleepingBackends: Statement {
    typealias Row = Int64
    static let sql: SQL<Self> = """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event = 'PgSleep' AND state = 'active'
        """
}
