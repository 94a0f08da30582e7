import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// How often a password is stretched only ever grows.
@Suite struct IterationsTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")

    private static func rewriting(_ target: String, _ truth: String, _ lie: String)
        -> @Sendable (HTTPRequest, HTTPReply) -> HTTPReply
    {
        { request, reply in
            guard request.target.hasPrefix(target) else { return reply }
            let text = String(decoding: reply.body, as: UTF8.self).replacing(truth, with: lie)
            return HTTPReply(head: reply.head, body: Array(text.utf8))
        }
    }

    private func iterations(_ server: LiveServer) async throws -> Int {
        try await server.api().getKDFParameters(userid: userid).iterations
    }

    @Test func `fewer than were used here are refused before the password is used`() async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(
                phone.settings, userid: userid, password: password, iterations: 20_000)
            let keys = Mutex(0)
            phone.link.setAnswer { request in
                if request.target == "/v1/sessions" { keys.withLock { $0 += 1 } }
                return nil
            }
            phone.link.setRewrite(Self.rewriting("/v1/kdf", #""iterations":20000"#, #""iterations":10000"#))
            await #expect { try await vault.logInAgain(password: password) } throws: {
                if case VaultError.untrustworthy(.iterations(minimum: 20_000)) = $0 { true } else { false }
            }
            #expect(keys.withLock { $0 } == 0)
            // Unless a person says that the server's database is from before.
            await #expect { try await vault.logInAgain(password: password, restoringKeyring: true) } throws: {
                if case VaultError.wrongCredentials = $0 { true } else { false }
            }
            phone.link.setRewrite { $1 }
            try await vault.logInAgain(password: password)
        }
    }

    @Test func `what a server wants raises them to the app's limit at most`() async throws {
        try await LiveServer.with { server in
            let lie = Self.rewriting("/v1/service", #""iterations":10000"#, #""iterations":10000000"#)
            let phone = try Self.limited("phone", server)
            phone.link.setRewrite(lie)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            #expect(try await iterations(server) == 15_000)
            var code: RecoveryCode?
            code = try await vault.makeRecoveryCode(password: password)
            try await vault.changePassword(from: password, to: Password("another"))
            #expect(try await iterations(server) == 15_000)
            // A log-in with a higher limit of the app goes as far as that.
            var laptop = try Device("laptop", server)
            laptop.settings.stretching.automaticIterationLimit = 16_000
            let asks = Self.rewriting("/v1/sessions", #""kdfUpgradeRequired":false"#, #""kdfUpgradeRequired":true"#)
            laptop.link.setRewrite { asks($0, lie($0, $1)) }
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: Password("another"))
            #expect(try await iterations(server) == 16_000)
            try await other.sync()
            // Of a recovery the server says how many the account has.
            let tablet = try Self.limited("tablet", server)
            tablet.link.setRewrite(
                Self.rewriting("/v1/recoveries", #""iterations":16000"#, #""iterations":10000000"#))
            let printed = try #require(code)
            await #expect {
                try await Vault.recover(tablet.settings, userid: userid, code: printed, newPassword: password)
            } throws: {
                if case VaultError.untrustworthy(.tooManyIterations(maximum: 15_000)) = $0 { true } else { false }
            }
            #expect(try await iterations(server) == 16_000)
        }
    }

    private static func limited(_ name: String, _ server: LiveServer) throws -> Device {
        var device = try Device(name, server)
        device.settings.stretching.automaticIterationLimit = 15_000
        return device
    }

    @Test func `a recovery sets no credential with fewer`() async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(
                phone.settings, userid: userid, password: password, iterations: 20_000)
            let code = try #require(try await vault?.makeRecoveryCode(password: password))
            vault = nil
            phone.link.setRewrite(Self.rewriting("/v1/recoveries", #""iterations":20000"#, #""iterations":10000"#))
            let next = try await Vault.recover(
                phone.settings, userid: userid, code: code, newPassword: Password("another"))
            try await next.sync()
            #expect(try await iterations(server) == 20_000)
        }
    }

    @Test func `a log-in raises them when the server wants more, and everything opens as before`() async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            let code = try await vault.makeRecoveryCode(password: password)
            let id = try await vault.collection("notes", of: Note.self).put(Note(text: "kept"))
            try await vault.sync()
            try await server.restart(
                timeout: .seconds(10),
                ["SALTERN_KDF_MINIMUM_ITERATIONS": "12000", "SALTERN_KDF_DEFAULT_ITERATIONS": "14000"])
            phone.link.change(to: try CurlTransport(server.address()))

            // Refused: it goes on as it was. Without an answer: nobody can tell, and nothing is kept of it.
            for (status, isQuiet) in [(403, true), (503, false)] {
                let laptop = try Device("laptop", server)
                laptop.link.setAnswer { request in
                    guard request.target == "/v1/account/credential" else { return nil }
                    let body = #"{"type":"about:blank","title":"No","status":\#(status),"code":"no"}"#
                    return HTTPReply(head: HTTPReplyHead(status: status, fields: []), body: Array(body.utf8))
                }
                let other = try? await Vault.logIn(laptop.settings, userid: userid, password: password)
                #expect((other != nil) == isQuiet)
                try await other?.sync()
                #expect(try await iterations(server) == 10_000)
            }

            let changes = Mutex(0)
            let laptop = try Device("laptop", server)
            laptop.link.setAnswer { request in
                if request.target == "/v1/account/credential" { changes.withLock { $0 += 1 } }
                return nil
            }
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            #expect(try await iterations(server) == 14_000)
            try await other.sync()
            #expect(try await other.collection("notes", of: Note.self)[id] == Note(text: "kept"))
            try await other.lock()
            try await other.unlock(password)
            try await other.logInAgain(password: password)
            #expect(changes.withLock { $0 } == 1)
            try await vault.logInAgain(password: password)
            try await vault.sync()
            #expect(try await vault.notices().isEmpty)
            try await vault.changePassword(from: password, to: Password("another"))
            let device = try Device("recovered", server)
            let recovered = try await Vault.recover(
                device.settings, userid: userid, code: code, newPassword: password)
            try await recovered.sync()
            #expect(try await recovered.collection("notes", of: Note.self)[id] == Note(text: "kept"))
        }
    }
}
