import Testing

@testable import SalternClient

struct RetriesTests {
    private let quick = Retries(attempts: 4, waits: .microseconds(1)...(.microseconds(2)))

    @Test func `what may pass is tried again, and what may not is not`() async throws {
        var calls = 0
        let answer = try await quick { () throws(APIError) -> Int in
            calls += 1
            if calls < 4 { throw .transport(.connectionLost) }
            return 7
        }
        #expect(answer == 7 && calls == 4)
        calls = 0
        await #expect(throws: APIError.self) {
            try await quick { () throws(APIError) -> Int in
                calls += 1
                throw .transport(.pinMismatch)
            }
        }
        #expect(calls == 1)
        calls = 0
        await #expect(throws: APIError.self) {
            try await quick { () throws(APIError) -> Int in
                calls += 1
                throw .transport(.timedOut)
            }
        }
        #expect(calls == 4)
    }

    @Test func `a server that asks for a longer pause than the longest wait is not asked again`() async throws {
        let retries = Retries(attempts: 4, waits: .milliseconds(1)...(.milliseconds(1_500)))
        for (asked, expected) in [(0, 4), (2, 1), (600, 1), (86_400, 1)] {
            var calls = 0
            await #expect(throws: APIError.self) {
                try await retries { () throws(APIError) -> Int in
                    calls += 1
                    var problem = Problem(
                        status: 503, code: "overloaded", title: "", detail: nil, requestId: nil, field: nil,
                        canonical: nil, allowed: nil, used: nil, conflicts: nil, current: nil)
                    problem.retryAfter = .seconds(asked)
                    throw .problem(problem)
                }
            }
            #expect(calls == expected, "asked for \(asked) s")
        }
    }

    @Test func `waits double, stay within their bounds and obey the server`() {
        let retries = Retries()
        #expect(retries.wait(after: 1, asked: nil, chance: 1) == .seconds(1))
        #expect(retries.wait(after: 3, asked: nil, chance: 1) == .seconds(4))
        #expect(retries.wait(after: 40, asked: nil, chance: 1) == .seconds(60))
        #expect(retries.wait(after: 40, asked: nil, chance: 0) == .seconds(30))
        #expect(retries.wait(after: 1, asked: .seconds(9), chance: 0) == .seconds(9))
        #expect(retries.wait(after: 1, asked: .seconds(1_000_000), chance: 1) <= .seconds(602))
    }
}
