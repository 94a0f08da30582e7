import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// What a person does with an account beside its items, against a real server.
@Suite struct AccountTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")
    private let another = Password("tr0ub4dor&3")

    private func withVault(_ body: (LiveServer, Vault, Device, ItemID) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            let id = try await vault.collection("notes", of: Note.self).put(Note(text: "kept"))
            try await vault.sync()
            try await body(server, vault, phone, id)
        }
    }

    private func read(_ server: LiveServer, _ userid: String, _ password: Password, _ id: ItemID) async throws -> Note?
    {
        let device = try Device("new", server)
        let vault = try await Vault.logIn(device.settings, userid: userid, password: password)
        try await vault.sync()
        return try await vault.collection("notes", of: Note.self)[id]
    }

    @Test func `a new password opens everything, and the old one nothing`() async throws {
        try await withVault { server, vault, _, id in
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            let unsent = try await other.collection("notes", of: Note.self).put(Note(text: "not sent yet"))
            await #expect { try await vault.changePassword(from: another, to: another) } throws: {
                if case VaultError.wrongCredentials = $0 { true } else { false }
            }
            try await vault.changePassword(from: password, to: another)
            #expect(try await read(server, userid, another, id) == Note(text: "kept"))
            await #expect { try await read(server, userid, password, id) } throws: {
                if case VaultError.wrongCredentials = $0 { true } else { false }
            }
            // This device goes on; the other has to log in, and loses nothing.
            try await vault.sync()
            await #expect { try await other.sync() } throws: {
                if case VaultError.sessionEnded = $0 { true } else { false }
            }
            #expect(try await other.unsentCount() == 1)
            try await other.logInAgain(password: another)
            try await other.sync()
            try await vault.sync()
            #expect(try await vault.collection("notes", of: Note.self)[unsent] == Note(text: "not sent yet"))
        }
    }

    @Test func `another userid is another salt, and the same items`() async throws {
        try await withVault { server, vault, _, id in
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            let unsent = try await other.collection("notes", of: Note.self).put(Note(text: "not sent yet"))
            try await vault.changeUserid(to: "lovelace@example.org", password: password)
            #expect(try await read(server, "lovelace@example.org", password, id) == Note(text: "kept"))
            #expect(try await vault.account().userid == "lovelace@example.org")
            // Another device logs in with the new one and loses nothing; somebody else's account is none of its.
            let stranger = try Device("stranger", server)
            _ = try await Vault.signUp(stranger.settings, userid: "eve@example.org", password: password)
            await #expect { try await other.logInAgain(password: password, userid: "eve@example.org") } throws: {
                if case VaultError.otherAccount = $0 { true } else { false }
            }
            try await other.logInAgain(password: password, userid: "lovelace@example.org")
            try await other.sync()
            try await vault.sync()
            #expect(try await vault.collection("notes", of: Note.self)[unsent] == Note(text: "not sent yet"))
        }
    }

    @Test func `a recovery that was removed is gone, on the server and in the keyring`() async throws {
        try await withVault { server, vault, _, id in
            let code = try await vault.makeRecoveryCode(password: password)
            await #expect { try await vault.removeRecoveryCode(password: another) } throws: {
                if case VaultError.wrongCredentials = $0 { true } else { false }
            }
            try await vault.removeRecoveryCode(password: password)
            // Once more is no error: a reply may have been lost.
            try await vault.removeRecoveryCode(password: password)
            let device = try Device("thief", server)
            await #expect {
                try await Vault.recover(device.settings, userid: userid, code: code, newPassword: another)
            } throws: { if case VaultError.wrongCredentials = $0 { true } else { false } }
            #expect(try await vault.latestKeyring().keyring.recovery == nil)
            try await vault.changePassword(from: password, to: another)
            #expect(try await read(server, userid, another, id) == Note(text: "kept"))
        }
    }

    @Test func `a printed code sets a new password, again and again, and only the last one printed`() async throws {
        try await withVault { server, vault, _, id in
            let old = try await vault.makeRecoveryCode(password: password)
            let code = try await vault.makeRecoveryCode(password: password)
            // A later change of the password does not touch it.
            try await vault.changePassword(from: password, to: another)
            for (number, word) in ["one", "two"].enumerated() {
                let device = try Device("recovered \(number)", server)
                let recovered = try await Vault.recover(
                    device.settings, userid: userid, code: try #require(RecoveryCode(code.text)),
                    newPassword: Password(word))
                try await recovered.sync()
                #expect(try await recovered.collection("notes", of: Note.self)[id] == Note(text: "kept"))
            }
            #expect(try await read(server, userid, Password("two"), id) == Note(text: "kept"))
            let device = try Device("thief", server)
            await #expect {
                try await Vault.recover(device.settings, userid: userid, code: old, newPassword: password)
            } throws: { if case VaultError.wrongCredentials = $0 { true } else { false } }
        }
    }

    @Test func `a second factor is asked for, and its recovery codes work once`() async throws {
        try await withVault { server, vault, _, id in
            let secret = try await vault.beginSecondFactor(password: password)
            #expect(secret.uri.contains("secret="))
            let codes = try await vault.confirmSecondFactor(code: Self.code(secret.secret, at: Date()))
            #expect(codes.count == 10)
            await #expect { try await read(server, userid, password, id) } throws: {
                if case VaultError.codeRequired = $0 { true } else { false }
            }
            let device = try Device("laptop", server)
            _ = try await Vault.logIn(device.settings, userid: userid, password: password, code: codes[0])
            let second = try Device("tablet", server)
            await #expect {
                try await Vault.logIn(second.settings, userid: userid, password: password, code: codes[0])
            } throws: { if case VaultError.wrongCode = $0 { true } else { false } }
            #expect(try await vault.renewSecondFactorCodes(password: password).count == 10)
            try await vault.endSecondFactor(password: password)
            #expect(try await read(server, userid, password, id) == Note(text: "kept"))
        }
    }

    /// RFC 6238 with six digits of 30 seconds.
    static func code(_ secret: String, at moment: Date) -> String {
        var bits = 0
        var count = 0
        var key: [UInt8] = []
        for character in secret.utf8 where character != UInt8(ascii: "=") {
            bits = bits << 5 | (Base32.alphabet.firstIndex(of: character) ?? 0)
            count += 5
            if count >= 8 {
                count -= 8
                key.append(UInt8(truncatingIfNeeded: bits >> count))
            }
        }
        let step = UInt64(moment.timeIntervalSince1970) / 30
        let code = HMACSHA1.authenticationCode(for: withUnsafeBytes(of: step.bigEndian) { [UInt8]($0) }, using: key)
        let offset = Int(code[19] & 15)
        let number = code[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) } & 0x7fff_ffff
        let digits = String(number % 1_000_000)
        return String(repeating: "0", count: 6 - digits.count) + digits
    }

    @Test func `sessions are listed and ended, and the log tells of them`() async throws {
        try await withVault { server, vault, _, _ in
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            let sessions = try await vault.sessions()
            #expect(Set(sessions.compactMap(\.device?.name)) == ["phone", "laptop"])
            #expect(try await vault.endOtherSessions() == 1)
            await #expect { try await other.sync() } throws: {
                if case VaultError.sessionEnded = $0 { true } else { false }
            }
            #expect(try await vault.events().events.contains { $0.kind == "session_ended" })
        }
    }

    @Test func `a link opens what was shared, as often as it may`() async throws {
        try await withVault { server, vault, _, _ in
            let payload = SecureBytes(copying: Array(#"{"user":"guests"}"#.utf8))
            let link = try await vault.share(payload, base: try #require(URL(string: server.base)), maxViews: 1)
            #expect(link.url.absoluteString.contains("/s/\(link.id)#"))
            #expect(try await vault.open(link.url) == payload)
            await #expect { try await vault.open(link.url) } throws: {
                if case VaultError.notFound = $0 { true } else { false }
            }
        }
    }

    @Test func `who leaves can take everything along, and leaves nothing`() async throws {
        try await withVault { server, vault, device, _ in
            let file = URL(filePath: device.folder.path + "/export.ndjson")
            try await vault.export(to: file, password: password)
            let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            #expect(lines.contains { $0.contains(#""type":"item""#) })
            #expect(lines.last?.contains(#""type":"end""#) == true)
            try await vault.leave(password: password)
            let names = try FileManager.default.contentsOfDirectory(atPath: device.folder.path)
            #expect(!names.contains("device.key"))
            let again = try Device("again", server)
            await #expect { try await Vault.logIn(again.settings, userid: userid, password: password) } throws: {
                if case VaultError.wrongCredentials = $0 { true } else { false }
            }
        }
    }
}
