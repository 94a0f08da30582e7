import Foundation
import SalternServer
import SalternTesting
import Testing

@testable import SalternClient
@testable import saltern

/// Tokens for services of the operator, against a real server.
@Suite struct VaultTokenTests {
    private let password = Password("correct horse battery staple")

    private func withVault(
        _ lifetime: String, showsTime: Bool = true, _ body: (LiveServer, Vault) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        let file = SigningKeyFile(path: directory.path + "/signing-keys")
        _ = try file.create(at: SystemWallClock().now)
        let settings = [
            "SALTERN_TOKEN_ISSUER": "https://localhost", "SALTERN_TOKEN_AUDIENCES": "billing,push=account",
            "SALTERN_SIGNING_KEY_FILE": file.path, "SALTERN_TOKEN_LIFETIME": lifetime,
        ]
        try await LiveServer.with(settings) { server in
            let phone = try Device("phone", server)
            if !showsTime {
                phone.link.setRewrite {
                    HTTPReply(head: HTTPReplyHead(status: $1.head.status, fields: []), body: $1.body)
                }
            }
            try await body(
                server, try await Vault.signUp(phone.settings, userid: "ada@example.org", password: password))
        }
    }

    @Test func `a token is kept for its audience until the session changes`() async throws {
        try await withVault("5m") { _, vault in
            let first = try await vault.token(for: "billing")
            #expect(first.token.split(separator: ".").count == 3)
            #expect((200...301).contains(first.expiresAt.timeIntervalSinceNow))
            #expect(try await vault.token(for: "billing").token == first.token)
            let push = try await vault.token(for: "push")
            #expect(push.token != first.token)
            #expect("\(first)" == "IdentityToken(redacted)")
            try await vault.logInAgain(password: password)
            #expect(try await vault.token(for: "billing").token != first.token)
            try await vault.lock()
            await #expect { try await vault.token(for: "billing") } throws: {
                if case VaultError.locked = $0 { true } else { false }
            }
        }
    }

    @Test func `a token in its last minute is not returned again`() async throws {
        try await withVault("60s") { _, vault in
            let first = try await vault.token(for: "billing")
            #expect(try await vault.token(for: "billing").token != first.token)
        }
    }

    /// The clock of the device may be wrong.
    @Test func `a token of a server without the time is not kept`() async throws {
        try await withVault("5m", showsTime: false) { _, vault in
            let first = try await vault.token(for: "billing")
            #expect(try await vault.token(for: "billing").token != first.token)
        }
    }

    @Test func `the server's time does not depend on the clock of the device`() async throws {
        try await LiveServer.with { server in
            var device = try Device("phone", server)
            device.settings.now = { Date().addingTimeInterval(40 * 86_400) }
            let vault = try Vault(device.settings)
            // There was no reply before the first call, and there is none after it.
            for isUnreachable in [false, true] {
                device.link.setUnreachable(isUnreachable)
                let time = try await vault.fetchServerTime()
                #expect(abs(time.timeIntervalSinceNow) < 60)
            }
        }
    }

    @Test func `an unknown audience is refused, and so is each where the server issues none`() async throws {
        try await withVault("5m") { _, vault in
            await #expect { try await vault.token(for: "unknown") } throws: {
                if case VaultError.refused(let problem) = $0 { problem.code == "unknown_audience" } else { false }
            }
        }
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: "ada@example.org", password: password)
            await #expect { try await vault.token(for: "billing") } throws: {
                if case VaultError.refused(let problem) = $0 { problem.code == "tokens_not_offered" } else { false }
            }
        }
    }
}
