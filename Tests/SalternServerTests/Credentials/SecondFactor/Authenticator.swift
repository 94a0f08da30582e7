import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// What a person has on their phone: the secret, and a clock.
struct Authenticator: Sendable {
    let passwords: OneTimePasswords
    let clock: ManualClock

    /// Types in the secret.
    init(secret: String, clock: ManualClock) throws {
        var bits: UInt32 = 0
        var bitCount = 0
        var bytes: [UInt8] = []
        for character in secret.utf8 {
            let value = try #require(Base32.alphabet.firstIndex(of: character))
            bits = bits << 5 | UInt32(value)
            bitCount += 5
            if bitCount >= 8 {
                bitCount -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
            }
        }
        passwords = OneTimePasswords(secret: SecureBytes(copying: bytes))
        self.clock = clock
    }

    /// The code now, or so many steps later.
    func code(_ steps: Int64 = 0) -> String {
        passwords.code(at: OneTimePasswords.step(at: clock.now) + steps).text
    }
}

/// An account with a second factor.
struct ProtectedAccount: Sendable {
    let account: TestAccount
    let authenticator: Authenticator
    let recoveryCodes: [String]

    var client: TestClient { account.client }

    /// The body of a log-in.
    func logIn(_ code: String?) -> JSONValue {
        var members: [(name: String, value: JSONValue)] = [
            (name: "userid", value: .string(account.userid)),
            (name: "passwordKey", value: .string(account.passwordKey)),
        ]
        if let code { members.append((name: "totp", value: .string(code))) }
        return .object(JSONObject(members))
    }
}

extension TestAccount {
    /// The body of a dangerous call.
    var currentKey: JSONValue { ["currentPasswordKey": .string(passwordKey)] }

    /// Sends a DELETE with the present password key.
    func deleteSecondFactor() async throws -> TestResponse {
        try await client.send(.delete, "/v1/account/totp", body: TestClient.document(currentKey))
    }
}

extension TestApplication {
    /// Makes a secret for an account.
    func beginSecondFactor(_ account: TestAccount) async throws -> Authenticator {
        let begun = try await account.client.post("/v1/account/totp", account.currentKey)
        #expect(begun.status == 201)
        return try Authenticator(secret: #require(begun.string("secret")), clock: clock)
    }

    /// Gives an account a second factor, and lets the code that confirmed it pass.
    func protect(_ account: TestAccount) async throws -> ProtectedAccount {
        let authenticator = try await beginSecondFactor(account)
        let confirmed = try await account.client.post(
            "/v1/account/totp/confirm", ["totp": .string(authenticator.code())])
        #expect(confirmed.status == 200)
        let codes = try #require(confirmed.array("recoveryCodes")).map { try $0.string() }
        clock.advance(by: .seconds(30))
        return ProtectedAccount(account: account, authenticator: authenticator, recoveryCodes: codes)
    }

    /// Tries to log in.
    func logIn(_ account: ProtectedAccount, _ code: String?) async throws -> TestResponse {
        try await client.post("/v1/sessions", account.logIn(code))
    }
}
