import EventLoop
import Glibc
import SalternTesting
import Testing

@testable import Postgres

/// Backends that are killed, servers that are restarted, tasks that are cancelled, queues that are full.
@Suite(.timeLimit(.minutes(60))) struct LossTests {
    @Test func `killed backends are survived`() async throws {
        let (before, after) = try await withDatabase {
            $0.readConnections = 2
            $0.commitConnections = 2
        } _: { client in
            let before = try await client.execute(BackendID())
            _ = try await client.withConnection { try await $0.execute(TerminateOthers()) }
            // Statements may meet the end of their connection, and are then told so.
            var after: [Int32] = []
            try await eventually {
                do throws(PostgresError) {
                    after = try await client.execute(BackendID())
                } catch {
                    guard error.isTransient else { throw error }
                }
                return !after.isEmpty && after != before
            }
            return (before, after)
        }
        #expect(before != after)
    }

    @Test func `a connection that is silent is given up, however much the others have to do`() async throws {
        struct SleepLong: Statement {
            typealias Row = Void
            static let isReadOnly = true
            static let sql: SQL<Self> = "SELECT pg_sleep(60)"
        }
        try await withClient {
            $0.readConnections = 2
            $0.silenceTimeout = .seconds(1)
            $0.statementTimeout = .zero
            // Nothing of the pool's own is due meanwhile.
            $0.leasedIdleTimeout = .seconds(500)
        } _: { client in
            let sleeping = Task(executorPreference: client.loop) { try await client.execute(SleepLong()) }
            let others = Task(executorPreference: client.loop) {
                while !Task.isCancelled { _ = try await client.withTransaction { try await $0.execute(BackendID()) } }
            }
            await #expect {
                try await sleeping.value
            } throws: { error in
                if case .timedOut? = error as? PostgresError { true } else { false }
            }
            others.cancel()
            _ = await others.result
        }
    }

    @Test func `what is sent on a connection that has just ended is told so, and does not wait for ever`() async throws
    {
        let outcomes = try await withClient { client in
            let ended = PostgresConnection(
                id: ConnectionID(slot: 0, generation: -1), lane: .leases, serverIndex: 0, client: client)
            var outcomes: [Execution.Outcome] = []
            for _ in 0..<2 {
                let execution = client.makeExecution()
                ended.beginRequest(isReadOnly: false)
                ended.send(Echo(value: 1 as Int32), for: execution)
                ended.send(Echo(value: 2 as Int32), for: execution)
                outcomes.append(await client.outcome(of: execution))
            }
            return outcomes
        }
        for outcome in outcomes {
            guard case .again = outcome else {
                Issue.record("\(outcome)")
                continue
            }
        }
        #expect(outcomes.count == 2)
    }

    @Test func `a statement that is under way when its backend is killed fails at once and is not sent again`()
        async throws
    {
        let (error, ids) = try await withDatabase(AddNote.schema) { client in
            struct SlowAdd: Statement {
                typealias Row = Void
                static let sql: SQL<Self> = "INSERT INTO public.notes SELECT 1, pg_sleep(60)::text"
            }
            let task = Task(executorPreference: client.loop) { _ = try await client.execute(SlowAdd()) }
            try await eventually { try await client.withConnection { try await $0.execute(SleepingBackends()) } == [1] }
            _ = try await client.withConnection { try await $0.execute(TerminateOthers()) }
            let error = await #expect(throws: PostgresError.self) { try await task.value }
            var ids: [Int32]?
            try await eventually {
                ids = try? await client.execute(NoteIDs())
                return ids != nil
            }
            return (error, ids)
        }
        #expect(error?.isTransient == true)
        #expect(ids == [])
    }

    @Test(arguments: [TemporaryCluster.StopMode.fast, .immediate])
    func `a restart of PostgreSQL is survived`(mode: TemporaryCluster.StopMode) async throws {
        try await TemporaryCluster.with { cluster in
            try await withClient(
                {
                    $0.backOff = .milliseconds(10)...(.milliseconds(100))
                    $0.acquireTimeout = .milliseconds(200)
                }, url: cluster.url
            ) { client in
                try await eventually { (try? await client.execute(Echo(value: true))) == [true] }
                try await cluster.stop(mode)
                // Nothing is there: statements are refused in time, and say that they may be repeated.
                let error = await #expect(throws: PostgresError.self) {
                    for _ in 0..<3 { _ = try await client.execute(Echo(value: true)) }
                }
                #expect(error?.isTransient == true)
                try await eventually { !client.isReady }
                try await cluster.start()
                try await eventually { (try? await client.execute(Echo(value: true))) == [true] }
            }
        }
    }

    @Test func `a server that cannot be reached makes statements unavailable, with a time to come back`() async throws {
        let recorder = EventRecorder()
        let error = try await withClient(
            {
                $0.acquireTimeout = .milliseconds(50)
                $0.observer = { recorder.record($0) }
            }, url: "postgresql://nobody@127.0.0.1:1/none"
        ) { client in
            // The request may give up before a first connection has been tried.
            try await eventually { !recorder.events.isEmpty }
            return await #expect(throws: PostgresError.self) { _ = try await client.execute(Echo(value: true)) }
        }
        guard case .unavailable(let delay, let reason) = try #require(error) else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(delay >= .seconds(1))
        #expect(reason == .system(ECONNREFUSED))
    }

    @Test func `a connection whose server has become read-only is replaced by a new one`() async throws {
        let notes = Migration(version: 1, name: "notes", sql: AddNote.schema)
        let (error, before, after) = try await TemporaryDatabase.with(migrations: [notes]) { database in
            let url = database.administratorURL
            let separator = url.contains("?") ? "&" : "?"
            return try await withClient(
                {
                    $0.readConnections = 1
                    $0.commitConnections = 1
                }, url: url + separator + "options=-c%20default_transaction_read_only%3Don"
            ) { client in
                let before = try await client.execute(BackendID())
                let error = await #expect(throws: PostgresError.self) { _ = try await client.execute(AddNote(id: 1)) }
                return (error, before, try await client.execute(BackendID()))
            }
        }
        #expect(error?.sqlState == .readOnlyTransaction && error?.isTransient == true)
        #expect(before != after)
    }

    @Test func `a server is found by its name, behind one that is not there`() async throws {
        try await TemporaryCluster.with { cluster in
            let url = cluster.url.replacing("@", with: "@localhost:1,")
            let answer = try await withClient(url: url) { try await $0.execute(Echo(value: true)) }
            #expect(answer == [true])
        }
    }

    @Test func `a task that is cancelled while its statement runs goes on at once, and its connection too`()
        async throws
    {
        let (isCancelled, same) = try await withClient {
            $0.readConnections = 1
            $0.commitConnections = 1
        } _: { client in
            let before = try await client.execute(BackendID())
            let task = Task(executorPreference: client.loop) { _ = try await client.execute(Sleep(seconds: 0.2)) }
            await Task.yield()
            task.cancel()
            var isCancelled = false
            do { try await task.value } catch PostgresError.cancelled { isCancelled = true }
            return (isCancelled, try await client.execute(BackendID()) == before)
        }
        #expect(isCancelled)
        #expect(same)
    }

    @Test func `a statement that is cancelled before it is sent never runs`() async throws {
        let ids = try await withDatabase(AddNote.schema) {
            $0.readConnections = 1
            $0.commitConnections = 1
            $0.pipelineDepth = 1
        } _: { client in
            let blocker = Task(executorPreference: client.loop) { _ = try await client.execute(Sleep(seconds: 0.2)) }
            await Task.yield()
            let waiting = Task(executorPreference: client.loop) { _ = try await client.execute(AddNote(id: 1)) }
            await Task.yield()
            waiting.cancel()
            await #expect(throws: PostgresError.self) { try await waiting.value }
            try await blocker.value
            return try await client.execute(NoteIDs())
        }
        #expect(ids.isEmpty)
    }

    @Test func `a full queue refuses at once`() async throws {
        let refused = try await withClient {
            $0.readConnections = 1
            $0.commitConnections = 1
            $0.pipelineDepth = 1
            $0.queueLimit = 2
        } _: { client in
            // The connection that commits is open.
            _ = try await client.execute(Sleep(seconds: 0))
            return await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<5 {
                    group.addTask(executorPreference: client.loop) {
                        do { _ = try await client.execute(Sleep(seconds: 0.05)) } catch PostgresError.unavailable {
                            return true
                        } catch {}
                        return false
                    }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
        }
        #expect(refused == 2)
    }

    @Test func `a shutdown lets what is under way finish and refuses the rest`() async throws {
        let (finished, error) = try await withClient { client in
            _ = try await client.execute(Sleep(seconds: 0))
            let task = Task(executorPreference: client.loop) { _ = try await client.execute(Sleep(seconds: 0.1)) }
            await Task.yield()
            await client.shutdown()
            let error = await #expect(throws: PostgresError.self) { _ = try await client.execute(Echo(value: true)) }
            var finished = true
            do { try await task.value } catch { finished = false }
            return (finished, error)
        }
        #expect(finished)
        guard case .unavailable = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }
}
