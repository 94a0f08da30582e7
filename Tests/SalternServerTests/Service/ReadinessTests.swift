import Postgres
import SalternTesting
import Synchronization
import Testing

@testable import SalternServer

@Suite struct ReadinessTests {
    private final class Database: Sendable {
        private struct State {
            var asked = 0
            var waiting: [CheckedContinuation<Void, Never>] = []
        }
        private let state = Mutex(State())

        var asked: Int { state.withLock { $0.asked } }

        func ask() async -> Readiness.Answer {
            await withCheckedContinuation { continuation in
                state.withLock { state in
                    state.asked += 1
                    state.waiting.append(continuation)
                }
            }
            return .failure(Asked(number: asked))
        }

        func answer() {
            let waiting = state.withLock { state in
                defer { state.waiting.removeAll() }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }
    }

    private struct Asked: Error {
        let number: Int
    }

    private static func number(_ answer: Readiness.Answer?) -> Int? {
        if case .failure(let asked as Asked) = answer { asked.number } else { nil }
    }

    @Test func `however many ask, the database is asked by one of them, and once a second`() async throws {
        let clock = ManualClock()
        let start = clock.now
        let readiness = Readiness(deadline: .seconds(2)) { clock.now - start }
        let database = Database()
        for round in 1...3 {
            let answers = try await withThrowingTaskGroup(of: Int?.self) { group in
                for _ in 0..<200 {
                    group.addTask { Self.number(await readiness.answer { await database.ask() }) }
                }
                while database.asked < round { try await Task.sleep(for: .milliseconds(1)) }
                database.answer()
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(database.asked == round)
            // Those that were too many to wait heard what was known before, or nothing.
            #expect(answers.count { $0 == round } >= Readiness.waiterLimit)
            #expect(answers.allSatisfy { $0 == round || $0 == (round == 1 ? nil : round - 1) })
            let known = await readiness.answer { await database.ask() }
            #expect(Self.number(known) == round)
            clock.advance(by: Readiness.interval)
        }
    }
}
