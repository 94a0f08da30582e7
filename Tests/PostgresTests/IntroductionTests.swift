import Synchronization
import SalternTesting
import Testing

@testable import Postgres

/// What is done on each new connection before it is used.
@Suite(.timeLimit(.minutes(60))) struct IntroductionTests {
    private static let counter = "CREATE TABLE public.counter (n integer); INSERT INTO public.counter VALUES (0)"

    @Test func `connections whose introductions meet on a row wait for it, and are then like every other`() async throws
    {
        let introductions = Counter()
        let recorder = EventRecorder()
        try await withDatabase(
            Self.counter,
            {
                $0.readConnections = 2
                $0.commitConnections = 2
                $0.observer = { recorder.record($0) }
                $0.onConnected = { lease in
                    // On a slow machine one may look whether another server has taken over.
                    if lease.isProbe { return }
                    introductions.add()
                    _ = try await lease.execute(CountUp(), Sleep(seconds: 0.05))
                }
            }
        ) { client in
            try await eventually { try await client.execute(Count()) == [4] }
            #expect(introductions.value == 4)
            #expect(recorder.events.isEmpty)
            #expect(try await client.execute(ShownTimeouts<Reading>()) == ["5ms 2min"])
            #expect(try await client.execute(ShownTimeouts<Writing>()) == ["5ms 2min"])
        }
    }

    @Test func `why a connection is not used is said once, and so is that one is used again`() async throws {
        let recorder = EventRecorder()
        let welcomes = Counter()
        try await withClient({
            $0.acquireTimeout = .milliseconds(500)
            $0.backOff = .milliseconds(5)...(.milliseconds(10))
            $0.observer = { recorder.record($0) }
            $0.onConnected = { _ in if welcomes.value == 0 { throw NotWelcome() } }
        }) { client in
            await #expect(throws: PostgresError.self) { _ = try await client.execute(Echo(value: true)) }
            // The request may give up before a first connection has been tried.
            try await eventually { !recorder.events.isEmpty }
            let reason = ConnectionFailure.unsuitable("nobody is welcome")
            #expect(recorder.events == [.cannotConnect(reason)])
            #expect(reason.description.contains("nobody is welcome"))
            welcomes.add()
            try await eventually { (try? await client.execute(Echo(value: true))) == [true] }
            try await eventually { recorder.events.count > 1 }
            #expect(recorder.events == [.cannotConnect(reason), .connected])
        }
    }
}

private final class Counter: Sendable {
    private let count = Mutex(0)
    var value: Int { count.withLock { $0 } }
    func add() { count.withLock { $0 += 1 } }
}

private struct NotWelcome: Error, CustomStringConvertible {
    var description: String { "nobody is welcome" }
}

private struct CountUp: Statement {
    typealias Row = Void
    static let sql: SQL<Self> = "UPDATE public.counter SET n = n + 1"
}

private struct Count: Statement {
    typealias Row = Int32
    static let sql: SQL<Self> = "SELECT n FROM public.counter"
    static let isReadOnly = true
}

/// Which of the shared connections a statement goes to.
private protocol Purpose: Sendable { static var isReadOnly: Bool { get } }
private enum Reading: Purpose { static var isReadOnly: Bool { true } }
private enum Writing: Purpose { static var isReadOnly: Bool { false } }

private struct ShownTimeouts<For: Purpose>: Statement {
    static var sql: SQL<Self> {
        "SELECT concat_ws(' ', current_setting('lock_timeout'), current_setting('statement_timeout'))"
    }
    static var isReadOnly: Bool { For.isReadOnly }
    static func decode(_ row: inout RowReader) throws(PostgresError) -> String { try row.next() }
}
