import Cryptography
import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

/// Time does not tell whether a userid exists.
@Suite struct TimingTests {
    /// What a classifier may do better than a coin: one of 4,000 fair coins does better by chance.
    private static let bound = 3.5
    private static let accounts = 400
    /// Pairs that are measured at once.
    private static let lanes = 6

    private static let rightKey = Fixtures.passwordKey("right")
    private static let wrongKey = Fixtures.passwordKey("wrong")

    /// One kind of userid: a prefix that a number follows, and the key that is sent for it.
    private struct Kind: Sendable {
        let prefix: String
        var key = TimingTests.wrongKey
        /// Waits for so long, so that the test is seen to fail.
        var delay = Duration.zero
        /// Whether the token of a device comes along that belongs to somebody else.
        var showsToken = false

        static let known = Kind(prefix: "known-user")
        static let unknown = Kind(prefix: "other-user")
        /// A locked account, at which the right key is shown.
        static let locked = Kind(prefix: "shut-users", key: TimingTests.rightKey)
        static let knownWithToken = Kind(prefix: "known-user", showsToken: true)
        static let unknownWithToken = Kind(prefix: "other-user", showsToken: true)

        func userid(_ number: Int) -> String { "\(prefix)-\(100 + number % TimingTests.accounts)@example.org" }
    }

    /// As many accounts as there are numbers, each with one session, as it would be after a log-in.
    private static func fill(_ app: TestApplication) async throws {
        let key = try PasswordKey(Base64.decodeSecure(Array(rightKey.utf8)))
        let verifier = Hex.encode(key.verifier.digest.bytes)
        for (prefix, lockedAt) in [(Kind.known.prefix, "NULL"), (Kind.locked.prefix, "now()")] {
            try await app.administer(
                """
                WITH made AS (
                    SELECT gen_random_uuid() AS id, '\(prefix)-' || n || '@example.org' AS userid
                    FROM generate_series(100, \(99 + accounts)) AS n
                ), login AS (
                    INSERT INTO saltern.logins (userid, account_id, verifier, kdf_iterations)
                    SELECT userid, id, '\\x\(verifier)', 600000 FROM made
                ), session AS (
                    INSERT INTO saltern.sessions
                        (account_id, token_hash, session_id, created_at, last_used_at, expires_at)
                    SELECT id, sha256(id::text::bytea), id, now(), now(), 'infinity' FROM made
                )
                INSERT INTO saltern.accounts (account_id, userid, created_at, locked_at)
                SELECT id, userid, now(), \(lockedAt) FROM made
                """)
        }
        try await app.administer("ANALYZE saltern.logins, saltern.accounts, saltern.sessions")
    }

    private enum Route { case kdf, login }

    /// The token of a device of an account that is none of those.
    private static func token(_ app: TestApplication) -> String {
        DeviceTokens(keys: app.configuration.masterKey.subkeys("known-device"))
            .text(.new(of: .random(), generation: 1)) ?? ""
    }

    /// How long one request takes.
    private static func time(_ app: TestApplication, _ route: Route, _ kind: Kind, _ number: Int) async throws
        -> Duration
    {
        let userid = kind.userid(number)
        let start = ContinuousClock.now
        let reply: TestResponse
        switch route {
        case .kdf: reply = try await app.client.post("/v1/kdf", ["userid": .string(userid)])
        case .login:
            var body: [(name: String, value: JSONValue)] = [
                (name: "userid", value: .string(userid)), (name: "passwordKey", value: .string(kind.key)),
            ]
            if kind.showsToken { body.append((name: "device", value: ["token": .string(token(app))])) }
            reply = try await app.client.post("/v1/sessions", .object(JSONObject(body)))
        }
        if kind.delay > .zero {
            let end = ContinuousClock.now + kind.delay
            while ContinuousClock.now < end {}
        }
        let duration = ContinuousClock.now - start
        #expect(reply.status == (route == .kdf ? 200 : 401))
        return duration
    }

    /// Measures pairs in random order, some at once: most of an answer's time is waiting.
    private static func compare(
        _ app: TestApplication, _ route: Route, _ first: Kind, _ second: Kind, pairs: Int
    ) async throws -> TimingComparison {
        // On the loop, so that no thread has to be woken up for a request.
        try await app.run {
            try await withThrowingTaskGroup(of: (Duration, Duration).self) { group in
                var comparison = TimingComparison()
                for number in 0..<pairs {
                    if number >= lanes, let (one, two) = try await group.next() { comparison.append(one, two) }
                    group.addTask { try await pair(app, route, first, second, number) }
                }
                for try await (one, two) in group { comparison.append(one, two) }
                return comparison
            }
        }
    }

    private static func pair(
        _ app: TestApplication, _ route: Route, _ first: Kind, _ second: Kind, _ number: Int
    ) async throws -> (Duration, Duration) {
        // Long enough that nobody is blocked; and nobody is asked about again soon.
        app.clock.advance(by: .seconds(61))
        if Bool.random() {
            let one = try await time(app, route, first, number)
            return (one, try await time(app, route, second, number))
        }
        let two = try await time(app, route, second, number)
        return (try await time(app, route, first, number), two)
    }

    @Test(arguments: [
        ("KDF parameters, known and unknown", Route.kdf, Kind.known, Kind.unknown, 3_000),
        ("log-in, wrong key and unknown userid", .login, .known, .unknown, 1_500),
        ("log-in, locked account and unknown userid", .login, .locked, .unknown, 1_500),
        ("log-in with another's token, known and unknown userid", .login, .knownWithToken, .unknownWithToken, 1_500),
    ])
    private func `no classifier on time does better than chance`(
        name: String, route: Route, first: Kind, second: Kind, pairs all: Int
    ) async throws {
        let pairs = PropertyTests.repetitions(all)
        try await TestApplication.with(connections: 1) { app in
            try await Self.fill(app)
            _ = try await Self.compare(app, route, first, second, pairs: 400)
            var advantage = try await Self.compare(app, route, first, second, pairs: pairs).advantage
            if advantage.deviations > Self.bound {
                // A difference is still there the second time, chance is not.
                advantage = try await Self.compare(app, route, first, second, pairs: pairs).advantage
            }
            #expect(advantage.deviations <= Self.bound, "\(name): \(advantage)")
        }
    }

    /// Measures requests that take a quarter longer than the present median, which depends on the machine's load.
    private static func compareSlower(_ app: TestApplication, pairs: Int) async throws -> TimingComparison {
        let usual = try await compare(app, .kdf, .known, .unknown, pairs: 300)
        let median = usual.pairs.map(\.0).sorted()[150]
        var slower = Kind.known
        slower.delay = .nanoseconds(max(median / 4, 50_000))
        return try await compare(app, .kdf, slower, .unknown, pairs: pairs)
    }

    @Test func `a request that takes a quarter longer is told apart`() async throws {
        try await TestApplication.with(connections: 1) { app in
            try await Self.fill(app)
            // The more the machine itself makes times differ, the more of them it takes.
            var pairs = PropertyTests.repetitions(1_500)
            var advantage = try await Self.compareSlower(app, pairs: pairs).advantage
            while advantage.deviations <= Self.bound, pairs < 12_000 {
                pairs *= 2
                advantage = try await Self.compareSlower(app, pairs: pairs).advantage
            }
            #expect(advantage.deviations > Self.bound, "\(advantage)")
        }
    }

    @Test func `the classifiers find a difference that is there and none that is not`() {
        var (none, small, tail) = (TimingComparison(), TimingComparison(), TimingComparison())
        // So many that chance hides none of them.
        for _ in 0..<16_000 {
            let noise = { Duration.nanoseconds(Int64.random(in: 0..<400_000) + Int64.random(in: 0..<400_000)) }
            none.append(noise(), noise())
            small.append(noise() + .microseconds(40), noise())
            // Only one in ten takes longer, but then much.
            tail.append(noise() + (Int.random(in: 0..<10) == 0 ? .milliseconds(2) : .zero), noise())
        }
        #expect(none.advantage.deviations <= Self.bound + 1)
        #expect(small.advantage.deviations > Self.bound)
        #expect(tail.advantage.deviations > Self.bound)
    }
}
