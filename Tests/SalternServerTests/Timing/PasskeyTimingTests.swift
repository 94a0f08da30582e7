import Cryptography
import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

/// Time does not tell whether a passkey exists.
@Suite struct PasskeyTimingTests {
    /// What a classifier may do better than a coin: one of 4,000 fair coins does better by chance.
    private static let bound = 3.5
    /// Pairs that are measured at once.
    private static let lanes = 6

    private static func time(_ app: TestApplication, _ answer: JSONValue) async throws -> Duration {
        let start = ContinuousClock.now
        let reply = try await app.client.post("/v1/passkeys/sessions", ["credential": answer])
        let duration = ContinuousClock.now - start
        #expect(reply.status == 401)
        return duration
    }

    private static func pair(
        _ app: TestApplication, _ first: JSONValue, _ second: JSONValue
    ) async throws -> (Duration, Duration) {
        if Bool.random() {
            let one = try await time(app, first)
            return (one, try await time(app, second))
        }
        let two = try await time(app, second)
        return (try await time(app, first), two)
    }

    /// Measures pairs in random order, some at once: most of an answer's time is waiting.
    private static func compare(
        _ app: TestApplication, _ first: JSONValue, _ second: JSONValue, pairs: Int
    ) async throws -> TimingComparison {
        try await app.run {
            try await withThrowingTaskGroup(of: (Duration, Duration).self) { group in
                var comparison = TimingComparison()
                for number in 0..<pairs {
                    if number >= lanes, let (one, two) = try await group.next() { comparison.append(one, two) }
                    group.addTask { try await pair(app, first, second) }
                }
                for try await (one, two) in group { comparison.append(one, two) }
                return comparison
            }
        }
    }

    @Test func `no classifier on time tells unknown passkeys and locked accounts from wrong signatures`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys, connections: 1) { app in
            let ada = try await app.register("ada")
            let key = try await app.addPasskey(ada, logsIn: true)
            let shut = try await app.addPasskey(app.register("shut"), logsIn: true)
            try await app.administer("UPDATE saltern.accounts SET locked_at = now() WHERE userid = 'shut'")
            let unknown = SoftwareAuthenticator()
            unknown.userHandle = key.userHandle
            key.changeSignature = { SecureRandom.bytes($0.count) }
            // Refused answers do not use up their challenge.
            let options = try await app.passkeyLogInOptions()
            let wrong = try key.get(options)
            for other in [try unknown.get(options), try shut.get(options)] {
                _ = try await Self.compare(app, wrong, other, pairs: 200)
                var advantage = try await Self.compare(app, wrong, other, pairs: 800).advantage
                if advantage.deviations > Self.bound {
                    // A difference is still there the second time, chance is not.
                    advantage = try await Self.compare(app, wrong, other, pairs: 800).advantage
                }
                #expect(advantage.deviations <= Self.bound, "\(advantage)")
            }
        }
    }
}
