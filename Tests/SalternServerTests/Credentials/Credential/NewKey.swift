import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// A request that changes a credential.
struct NewKey: Sendable {
    var members: [String: JSONValue]

    /// From the account's present key to the one of a seed.
    init(of account: TestAccount, to seed: String, iterations: Int64 = 600_000) {
        members = [
            "currentPasswordKey": .string(account.passwordKey),
            "passwordKey": .string(Fixtures.passwordKey(seed)), "kdf": ["iterations": .integer(iterations)],
        ]
    }

    /// The same request with further members, or without those that are nil.
    func with(_ more: [String: JSONValue?]) -> NewKey {
        var changed = self
        for (name, value) in more { changed.members[name] = value }
        return changed
    }

    var body: JSONValue { .object(JSONObject(members.map { (name: $0.key, value: $0.value) })) }
}

extension TestApplication {
    /// Tries to log in. Returns the reply's status.
    func logInStatus(_ userid: String, _ passwordKey: String) async throws -> Int {
        try await client.post(
            "/v1/sessions", ["userid": .string(userid), "passwordKey": .string(passwordKey)]
        ).status
    }

    /// Opens a session such as a recovery opens.
    func openRestrictedSession(_ account: TestAccount) async throws -> TestClient {
        let id = try #require(AccountID(pathParameter: account.id))
        let token = SessionToken(for: id)
        let hash = token.hash.digest.withUnsafeBytes { Hex.encode([UInt8]($0)) }
        try await administer(
            """
            INSERT INTO saltern.sessions
                (account_id, token_hash, session_id, created_at, last_used_at, expires_at, restricted)
            VALUES ('\(account.id)', '\\x\(hash)', gen_random_uuid(), '2026-01-01', '2026-01-01',
                '2026-01-01 00:15:00+00', true)
            """)
        return client.with(token: token.text)
    }
}

/// The kinds of the events of an account, oldest first.
struct EventKinds: Statement {
    typealias Row = String

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT kind FROM saltern.security_events WHERE account_id = \(\.accountID) ORDER BY occurred_at, kind"
}

extension TestApplication {
    /// What the security log of an account has, oldest first.
    func events(of account: TestAccount) async throws -> [String] {
        try await execute(EventKinds(accountID: #require(AccountID(pathParameter: account.id))))
    }
}
