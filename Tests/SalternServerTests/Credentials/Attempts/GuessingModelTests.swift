import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// Random interleavings of attempts, tokens of all ages, changes of credentials, ends of sessions, deletions and pauses: the
/// server answers as a model of eighteen counters does.
@Suite struct GuessingModelTests {
    private enum Counter: Hashable {
        case stranger(String)
        case slot(String, AccountID, UInt8, Int64)
        case earlier(String, AccountID, Int64)

        var userid: String {
            switch self {
            case .stranger(let userid), .slot(let userid, _, _, _), .earlier(let userid, _, _): userid
            }
        }
    }

    private struct Failures {
        var streak: Int
        var last: Timestamp
        var blockedUntil: Timestamp
    }

    private struct Account {
        let id: AccountID
        var key: String
        var generation: Int64 = 1
        var movedAt: Timestamp?
        let client: TestClient
        /// The slot that its session counts for.
        let slot: UInt8
    }

    private struct Model {
        var accounts: [String: Account] = [:]
        var failures: [Counter: Failures] = [:]

        func counter(_ userid: String, _ device: KnownDevice?, at now: Timestamp) -> Counter {
            guard let device, let account = accounts[userid], account.id == device.accountID else {
                return .stranger(userid)
            }
            if device.generation == account.generation {
                return .slot(userid, account.id, device.slot, device.generation)
            }
            if device.generation == account.generation - 1, let movedAt = account.movedAt,
                now - movedAt < .seconds(7 * 86_400)
            {
                return .earlier(userid, account.id, device.generation)
            }
            return .stranger(userid)
        }

        /// Whether an attempt is looked at, and what it leaves.
        mutating func attempt(_ counter: Counter, isRight: Bool, at now: Timestamp) -> Bool {
            let before = failures[counter]
            if let before, before.blockedUntil > now { return false }
            if isRight {
                failures[counter] = nil
                return true
            }
            let goesOn = before.map { $0.last > now - .seconds(86_400) } ?? false
            let streak = goesOn ? (before?.streak ?? 0) + 1 : 1
            let delay = streak < 5 ? 0 : min(1 << min(streak - 5, 10), 60)
            failures[counter] = Failures(streak: streak, last: now, blockedUntil: now + .seconds(Int64(delay)))
            return true
        }

        mutating func endGeneration(of userid: String, at now: Timestamp) {
            accounts[userid]?.generation += 1
            accounts[userid]?.movedAt = now
            failures = failures.filter { $0.key.userid != userid || $0.key == .stranger(userid) }
        }

        var mostCounters: Int {
            Dictionary(grouping: failures.keys, by: \.userid).values.map(\.count).max() ?? 0
        }
    }

    private static let userids = ["ada", "bob", "nobody"]

    private let pauses: [Duration] = [
        .zero, .zero, .seconds(1), .seconds(3), .seconds(20), .seconds(61), .seconds(4_000), .seconds(86_400),
        .seconds(5 * 86_400),
    ]

    private func register(_ app: TestApplication, _ userid: String, key: String) async throws -> Account {
        let reply = try await app.client.post(
            "/v1/accounts",
            ["userid": .string(userid), "passwordKey": .string(key), "kdf": ["iterations": 600_000]])
        let client = app.client.with(token: reply.string("session.token"))
        return Account(
            id: try #require(AccountID(pathParameter: reply.string("accountId") ?? "")), key: key,
            client: client, slot: try #require(client.slot))
    }

    private static var patientConfiguration: ServiceConfiguration {
        var configuration = TestApplication.configuration
        configuration.sessions = SessionPolicy(
            idleTimeout: .seconds(9_999 * 86_400), lifetime: .seconds(9_999 * 86_400))
        return configuration
    }

    @Test(arguments: 0..<6) func `whatever happens in whatever order, the server answers as the model`(_: Int)
        async throws
    {
        try await TestApplication.with(Self.patientConfiguration) { app in
            let devices = DeviceTokens(keys: app.configuration.masterKey.subkeys("known-device"))
            var model = Model()
            for userid in ["ada", "bob"] {
                model.accounts[userid] = try await register(app, userid, key: Fixtures.passwordKey(userid))
            }
            var tokens: [String] = []
            var steps: [String] = []
            for step in 0..<220 {
                app.clock.advance(by: pauses.randomElement() ?? .zero)
                let now = app.clock.now
                let userid = Self.userids.randomElement() ?? "ada"
                switch (Int.random(in: 0..<100), model.accounts[userid]) {
                case (..<88, let account):
                    let token = Int.random(in: 0..<4) == 0 ? nil : tokens.suffix(24).randomElement()
                    let isRight = account != nil && Int.random(in: 0..<12) == 0
                    let counter = model.counter(userid, token.flatMap { devices.device($0) }, at: now)
                    steps.append("\(step) \(userid) \(isRight) \(counter)")
                    let isLookedAt = model.attempt(counter, isRight: isRight, at: now)
                    let secret: GuessingTests.Secret = isRight || Bool.random() ? .passwordKey : .recoveryKey
                    let reply = try await GuessingTests.attempt(
                        app, userid, secret, key: isRight ? account?.key ?? "" : GuessingTests.wrongKey, token: token)
                    let expected = !isLookedAt ? 429 : isRight ? 201 : 401
                    try #require(reply.status == expected, "\(steps.suffix(20))")
                    if let token = reply.string("deviceToken") { tokens.append(token) }
                case (let chance, let account?):
                    // Dangerous calls are counted for the slot of the session.
                    let device = KnownDevice(accountID: account.id, slot: account.slot, generation: account.generation)
                    let isPermitted =
                        chance >= 96
                        || model.attempt(
                            model.counter(userid, device, at: now), isRight: true, at: now)
                    let body: JSONValue = ["currentPasswordKey": .string(account.key)]
                    steps.append("\(step) \(userid) \(chance)")
                    switch chance {
                    case ..<93:
                        let key = Fixtures.passwordKey("\(userid) \(step)")
                        let reply = try await account.client.put(
                            "/v1/account/credential",
                            [
                                "currentPasswordKey": .string(account.key), "passwordKey": .string(key),
                                "kdf": ["iterations": 600_000],
                            ])
                        try #require(reply.status == (isPermitted ? 200 : 429), "\(steps.suffix(20))")
                        guard isPermitted else { continue }
                        model.accounts[userid]?.key = key
                        model.endGeneration(of: userid, at: now)
                        tokens.append(try #require(reply.string("deviceToken")))
                    case ..<96:
                        let reply = try await account.client.send(
                            .delete, "/v1/account", body: TestClient.document(body))
                        try #require(reply.status == (isPermitted ? 204 : 429), "\(steps.suffix(20))")
                        guard isPermitted else { continue }
                        model.failures = model.failures.filter { $0.key.userid != userid }
                        model.accounts[userid] = try await register(app, userid, key: account.key)
                    default:
                        let reply = try await account.client.delete("/v1/sessions")
                        try #require(reply.status == 200)
                        model.endGeneration(of: userid, at: now)
                        tokens.append(try #require(reply.string("deviceToken")))
                    }
                default: continue
                }
                #expect(model.mostCounters <= 18)
            }
            #expect(try await app.execute(CountCounters()) == [Int64(model.failures.count)])
        }
    }
}

/// Rows of failures.
private struct CountCounters: Statement {
    typealias Row = Int64
    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT count(*) FROM saltern.failed_attempts"
}
