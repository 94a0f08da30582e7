import Postgres
import SalternTesting
import Testing

@Suite(.timeLimit(.minutes(60))) struct PipelineTests {
    @Test func `a thousand statements at once all get their own answer`() async throws {
        let answers = try await withClient { client in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<1_000 as Range<Int64> {
                    group.addTask(executorPreference: client.loop) {
                        try await client.execute(Echo(value: number)) == [number]
                    }
                }
                return try await group.reduce(into: 0) { count, isRight in count += isRight ? 1 : 0 }
            }
        }
        #expect(answers == 1_000)
    }

    /// Statements that only read share a sync, so an error of one makes the server pass over the ones behind it.
    @Test func `an error inside a pipeline stays with its statement`() async throws {
        let outcomes = try await withClient { client in
            try await withThrowingTaskGroup(of: (Int32, SQLState?).self) { group in
                for number in 0..<200 as Range<Int32> {
                    group.addTask(executorPreference: client.loop) {
                        do throws(PostgresError) {
                            let quotient = try await client.execute(Divide(divisor: number % 10))
                            return (quotient == [1_000 / (number % 10)] ? number : -1, nil)
                        } catch {
                            return (number, error.sqlState)
                        }
                    }
                }
                return try await group.reduce(into: [Int32: SQLState?]()) { $0[$1.0] = .some($1.1) }
            }
        }
        #expect(outcomes.count == 200)
        for (number, state) in outcomes {
            #expect(state == (number % 10 == 0 ? .divisionByZero : nil), "\(number)")
        }
    }

    @Test func `an error among writes stays with its statement`() async throws {
        let (failed, ids) = try await withDatabase(AddNote.schema) { client in
            let failed = await withTaskGroup(of: Int32?.self) { group in
                for number in 0..<60 as Range<Int32> {
                    group.addTask(executorPreference: client.loop) {
                        do throws(PostgresError) {
                            _ = try await client.execute(AddNote(id: number, body: number % 7 == 0 ? nil : "text"))
                            return nil
                        } catch {
                            return error.sqlState == .notNullViolation ? number : -1
                        }
                    }
                }
                return await group.reduce(into: Set<Int32>()) { if let id = $1 { $0.insert(id) } }
            }
            return (failed, try await client.execute(NoteIDs()))
        }
        #expect(failed == Set((0..<60).filter { $0 % 7 == 0 }))
        #expect(ids == (0..<60).filter { $0 % 7 != 0 })
    }

    @Test func `a group is atomic`() async throws {
        let (error, ids) = try await withDatabase(AddNote.schema) { client in
            var error: PostgresError?
            do throws(PostgresError) {
                _ = try await client.execute(AddNote(id: 1), AddNote(id: 2), AddNote(id: 1))
            } catch let failure {
                error = failure
            }
            _ = try await client.execute(AddNote(id: 3), AddNote(id: 4))
            return (error, try await client.execute(NoteIDs()))
        }
        #expect(error?.sqlState == .uniqueViolation)
        #expect(error?.constraint == "notes_key")
        #expect(ids == [3, 4])
    }

    @Test func `a group returns the rows of each statement in order`() async throws {
        let (numbers, texts, flags) = try await withClient { client in
            try await client.execute(Echo(value: 1 as Int64), Echo(value: "two"), Echo(value: [true, false]))
        }
        #expect(numbers == [1])
        #expect(texts == ["two"])
        #expect(flags == [[true, false]])
    }

    @Test func `an error that comes with the commit belongs to the request`() async throws {
        let schema =
            AddNote.schema
            + ";ALTER TABLE notes DROP CONSTRAINT notes_key, ADD UNIQUE (id) DEFERRABLE INITIALLY DEFERRED"
        let (state, ids) = try await withDatabase(schema) { client in
            _ = try await client.execute(AddNote(id: 1))
            var state: SQLState?
            do throws(PostgresError) {
                _ = try await client.execute(AddNote(id: 2), AddNote(id: 1))
            } catch let error {
                state = error.sqlState
            }
            return (state, try await client.execute(NoteIDs()))
        }
        #expect(state == .uniqueViolation)
        #expect(ids == [1])
    }

    @Test func `a statement that cannot be prepared fails each time, and its neighbours do not`() async throws {
        struct Nonsense: Statement {
            typealias Row = Void
            static let sql: SQL<Self> = "SELECT nonsense FROM nowhere"
            static let isReadOnly = true
        }
        let (states, answers) = try await withClient { client in
            await withTaskGroup(of: (SQLState?, Bool).self) { group in
                for number in 0..<40 as Range<Int64> {
                    group.addTask(executorPreference: client.loop) {
                        do throws(PostgresError) {
                            if number % 2 == 0 { _ = try await client.execute(Nonsense()) }
                            return (nil, try await client.execute(Echo(value: number)) == [number])
                        } catch {
                            return (error.sqlState, false)
                        }
                    }
                }
                return await group.reduce(into: ([SQLState](), 0)) { sums, one in
                    if let state = one.0 { sums.0.append(state) }
                    if one.1 { sums.1 += 1 }
                }
            }
        }
        #expect(states == Array(repeating: .undefinedTable, count: 20))
        #expect(answers == 20)
    }

    @Test func `a statement that runs too long is cancelled by the server, and the connection goes on`() async throws {
        try await undisturbed {
            let (state, before, after) = try await withClient {
                $0.statementTimeout = .seconds(3)
                $0.readConnections = 1
                $0.commitConnections = 1
            } _: { client in
                let before = try await client.execute(BackendID())
                var state: SQLState?
                do throws(PostgresError) { _ = try await client.execute(Sleep(seconds: 30)) } catch {
                    state = error.sqlState
                }
                return (state, before, try await client.execute(BackendID()))
            }
            #expect(state == .queryCanceled)
            #expect(before == after)
        }
    }

    @Test func `an error shows the statement and the constraint, but no value`() async throws {
        let error = try await withDatabase(AddNote.schema) { client in
            _ = try await client.execute(AddNote(id: 77, body: "canary"))
            do throws(PostgresError) {
                _ = try await client.execute(AddNote(id: 77, body: "canary"))
            } catch {
                return error as PostgresError?
            }
            return nil
        }
        let text = "\(try #require(error))" + String(reflecting: error)
        #expect(text.contains("23505") && text.contains("AddNote") && text.contains("notes_key"))
        #expect(!text.contains("77") && !text.contains("canary"))
    }
}
