import EventLoop
import Glibc
import SalternTesting
import Testing

@testable import Postgres

/// Commits that do not end, on clusters of their own.
@Suite(.timeLimit(.minutes(60)), .serialized) struct CommitTests {
    private struct WaitingCommits: Statement {
        typealias Row = Int32
        static let isReadOnly = true
        static let sql: SQL<Self> = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    }

    private struct Cancel: Statement {
        typealias Row = Bool
        static let isReadOnly = true
        static let sql: SQL<Self> = "SELECT pg_cancel_backend(\(\.pid))"
        let pid: Int32
    }

    private struct ReadNotes: Statement {
        typealias Row = Int32
        static let isReadOnly = true
        static let sql: SQL<Self> = "SELECT id FROM public.notes ORDER BY id"
    }

    private struct CountTableLocks: Statement {
        typealias Row = Int64
        static let isReadOnly = true
        static let sql: SQL<Self> = """
            SELECT count(*) FROM pg_locks
            WHERE relation = 'public.notes'::regclass AND mode = 'ExclusiveLock' AND granted
            """
    }

    private struct CountBackends: Statement {
        typealias Row = Int64
        static let isReadOnly = true
        static let sql: SQL<Self> = "SELECT count(*) FROM pg_stat_activity WHERE application_name ~ '^under test'"
    }

    /// Runs `body` with a client of a cluster of its own that has the table of notes, and a way to run scripts there.
    private static func with(
        _ recorder: EventRecorder, _ configure: @escaping @Sendable (inout PostgresConfiguration) -> Void = { _ in },
        _ body:
            @escaping @Sendable (PostgresClient, @escaping @Sendable (String) async throws -> Void) async throws -> Void
    ) async throws {
        try await TemporaryCluster.with { cluster in
            let url = cluster.url
            let scripts = try EventLoop(name: "scripts")
            try scripts.start()
            defer { scripts.stop() }
            let run: @Sendable (String) async throws -> Void = { script in
                try await PostgresScript.run([script], configuration: .patient(url), loop: scripts)
            }
            try await run(AddNote.schema)
            try await withClient(
                {
                    $0.readConnections = 1
                    $0.commitConnections = 2
                    // Longer than a busy machine keeps a commit waiting that ends.
                    $0.commitPatience = .seconds(2)
                    $0.backOff = .milliseconds(10)...(.milliseconds(50))
                    $0.applicationName = "under test"
                    $0.observer = { recorder.record($0) }
                    configure(&$0)
                }, url: url
            ) { client in try await body(client, run) }
        }
    }

    private static func add(_ client: PostgresClient, _ id: Int32) -> Task<Void, any Error> {
        Task(executorPreference: client.loop) { _ = try await client.execute(AddNote(id: id)) }
    }

    private static func isUnavailable(_ client: PostgresClient, _ id: Int32) async -> Bool {
        do throws(PostgresError) {
            _ = try await client.execute(AddNote(id: id))
        } catch {
            if case .unavailable = error { return true }
        }
        return false
    }

    @Test func `while no commit ends writes are refused at once and reads go on, until one ends`() async throws {
        try await undisturbed {
            let recorder = EventRecorder()
            try await Self.with(recorder) { client, run in
                _ = try await client.execute(AddNote(id: 1))
                try await run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
                try await run("SELECT pg_reload_conf()")
                // The first of these may be committed before the server has read its configuration.
                var waiting: [Task<Void, any Error>] = []
                var id: Int32 = 1
                while recorder.events.isEmpty {
                    id += 1
                    if try await client.execute(WaitingCommits()).isEmpty { waiting.append(Self.add(client, id)) }
                    try await Task.sleep(for: .milliseconds(20))
                }
                #expect(recorder.events == [.commitsStalled])
                for _ in 0..<20 {
                    #expect(await Self.isUnavailable(client, 1_000))
                    #expect(try await client.execute(ReadNotes()).contains(1))
                }
                await #expect(throws: PostgresError.self) {
                    try await client.withTransaction { _ = try await $0.execute(AddNote(id: 1_001)) }
                }
                try await run("ALTER SYSTEM RESET synchronous_standby_names")
                try await run("SELECT pg_reload_conf()")
                for task in waiting { try await task.value }
                try await eventually { await !Self.isUnavailable(client, 2_000) }
                #expect(recorder.events == [.commitsStalled, .commitsResumed])
                let ids = try await client.execute(ReadNotes())
                #expect(ids.contains(2_000) && !ids.contains(1_000) && !ids.contains(1_001))
            }
        }
    }

    @Test func `a request on a lease that waits for a lock stalls nothing, and one whose commit does not end does`()
        async throws
    {
        try await undisturbed {
            let recorder = EventRecorder()
            let key = RequestKey(.account, UUID(high: 0, low: 1))
            let other = RequestKey(.account, UUID(high: 0, low: 2))
            try await Self.with(recorder) { client, run in
                let holder = Task {
                    try await run("BEGIN; LOCK TABLE public.notes IN EXCLUSIVE MODE; SELECT pg_sleep(4); COMMIT")
                }
                try await eventually { try await client.execute(CountTableLocks()) == [1] }
                // It meets the lock, so that from then on requests of its key are on leases.
                let id: Int32 = 1
                _ = try await client.execute(AddNote(id: id), key: key)
                try await holder.value
                #expect(recorder.events.isEmpty)

                try await run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
                try await run("SELECT pg_reload_conf()")
                let waiting = Task(executorPreference: client.loop) {
                    for next: Int32 in 1...1_000 { _ = try await client.execute(AddNote(id: id + next), key: key) }
                }
                // Long before the server has been silent for so long that the connection is given up.
                try await eventually { !recorder.events.isEmpty }
                #expect(recorder.events == [.commitsStalled])
                #expect(await Self.isUnavailable(client, 10_000))
                await #expect {
                    _ = try await client.execute(AddNote(id: 10_001), key: other)
                } throws: { if case PostgresError.unavailable = $0 { true } else { false } }
                try await run("ALTER SYSTEM RESET synchronous_standby_names")
                try await run("SELECT pg_reload_conf()")
                _ = await waiting.result
                try await eventually { await !Self.isUnavailable(client, 20_000) }
            }
        }
    }

    @Test func `a commit that was cancelled while it waited for a standby is in doubt`() async throws {
        try await Self.with(EventRecorder(), { $0.commitPatience = .seconds(100) }) { client, run in
            _ = try await client.execute(AddNote(id: 1))
            try await run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            try await run("SELECT pg_reload_conf()")
            var errors: [PostgresError] = []
            var id: Int32 = 1
            // A single request, then a transaction; as long as the server has not read its configuration they succeed.
            while errors.count < 2 {
                id += 1
                let (isSingle, number) = (errors.isEmpty, id)
                let task = Task(executorPreference: client.loop) {
                    if isSingle {
                        _ = try await client.execute(AddNote(id: number))
                    } else {
                        try await client.withTransaction { _ = try await $0.execute(AddNote(id: number)) }
                    }
                }
                let canceller = Task(executorPreference: client.loop) {
                    while !Task.isCancelled {
                        for pid in try await client.execute(WaitingCommits()) {
                            _ = try await client.execute(Cancel(pid: pid))
                        }
                        try await Task.sleep(for: .milliseconds(10))
                    }
                }
                do { try await task.value } catch let error as PostgresError { errors.append(error) }
                canceller.cancel()
            }
            for error in errors {
                guard case .commitInDoubt = error else {
                    Issue.record("\(error)")
                    continue
                }
                #expect(error.isTransient)
            }
            try await run("ALTER SYSTEM RESET synchronous_standby_names")
            try await run("SELECT pg_reload_conf()")
        }
    }

    @Test func `a server process that is stuck holds up nobody, and counts until it is gone`() async throws {
        try await undisturbed {
            let recorder = EventRecorder()
            try await Self.with(
                recorder,
                {
                    $0.commitPatience = .seconds(3)
                    $0.silenceTimeout = .seconds(12)
                }
            ) { client, _ in
                let pid = try await client.execute(BackendID())[0]
                #expect(kill(pid, SIGSTOP) == 0)
                defer { _ = kill(pid, SIGCONT) }
                let earlier = recorder.events.count
                var id: Int32 = 0
                var lost: [Task<Void, any Error>] = []
                while !recorder.events.dropFirst(earlier).contains(.commitsStalled) {
                    // Two at once, one for each connection that commits, whichever of them is the stuck one.
                    for _ in 0..<2 {
                        id += 1
                        lost.append(Self.add(client, id))
                    }
                    try await Task.sleep(for: .milliseconds(50))
                }
                try await eventually { recorder.events.dropFirst(earlier).contains(.commitsResumed) }
                for number in 0..<50 { _ = try await client.execute(AddNote(id: 10_000 + Int32(number))) }
                var timedOut = 0
                for task in lost {
                    do { try await task.value } catch PostgresError.timedOut { timedOut += 1 }
                }
                #expect(timedOut > 0, "those on the stuck connection are told when it is given up")
                // Not replaced while its process is there: one connection that reads, one that writes, and the stuck one.
                try await Task.sleep(for: .milliseconds(500))
                for number in 50..<60 { _ = try await client.execute(AddNote(id: 10_000 + Int32(number))) }
                #expect(try await client.execute(CountBackends()) == [3])
                #expect(kill(pid, SIGCONT) == 0)
                try await eventually {
                    let pids = try await client.execute(BackendID(), BackendID()).0
                    return try await client.execute(CountBackends()) == [3] && pids != [pid] && kill(pid, 0) != 0
                }
            }
        }
    }

    private struct OtherBackends: Statement {
        typealias Row = Int32
        static let isReadOnly = true
        static let sql: SQL<Self> = """
            SELECT pid FROM pg_stat_activity WHERE application_name ~ '^under test' AND pid <> pg_backend_pid()
            """
    }

    @Test func `when all that commit were given up, reads go on, and commits when their processes are gone`()
        async throws
    {
        try await undisturbed {
            let recorder = EventRecorder()
            try await Self.with(recorder, { $0.silenceTimeout = .seconds(5) }) { client, _ in
                // A process that were stopped while its connection is set up would not be given up, but replaced.
                try await eventually {
                    client.statistics().lanes[.commits]?.open == 2 && client.statistics().lanes[.reads]?.open == 1
                }
                let pids = try await client.execute(OtherBackends())
                #expect(pids.count == 2)
                for pid in pids { #expect(kill(pid, SIGSTOP) == 0) }
                defer { for pid in pids { _ = kill(pid, SIGCONT) } }
                for task in [Self.add(client, 1), Self.add(client, 2)] {
                    let error = await #expect(throws: PostgresError.self) { try await task.value }
                    guard case .timedOut = error else {
                        Issue.record("\(String(describing: error))")
                        continue
                    }
                }
                // Where no request has gone an attempt to commit has.
                try await eventually { client.givenUp.count == 2 }
                #expect(await Self.isUnavailable(client, 3))
                #expect(try await client.execute(OtherBackends()).sorted() == pids.sorted())
                for pid in pids { #expect(kill(pid, SIGCONT) == 0) }
                try await eventually { await !Self.isUnavailable(client, 4) }
                #expect(recorder.events.last == .commitsResumed)
                try await eventually { try await client.execute(CountBackends()) == [3] }
            }
        }
    }
}
