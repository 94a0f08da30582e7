import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// What the process's memory holds of secrets that were dropped.
@Suite struct WipedMemoryTests {
    /// Nothing else of the process has this password and these userids.
    private let password = Password("wiped \(UUID())")
    private let next = Password("wiped \(UUID())")

    @Test func `after a lock neither the password key nor a token is in memory`() async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            let userid = "\(UUID())@example.org".lowercased()
            let vault = try await Vault.signUp(device.settings, userid: userid, password: password)
            var needles = try await passwordKeys(device, userid) + tokens(vault)
            try await vault.collection("notes", of: Note.self).put(Note(text: "salt"))
            try await vault.sync()
            try await vault.logInAgain(password: password)
            needles += try await tokens(vault)
            try await vault.changePassword(from: password, to: next)
            _ = try await vault.sessions()
            needles += try await tokens(vault)
            // The search finds what is there.
            #expect(try ProcessMemory.count(Array(needles.suffix(1)))[0] > 0)
            try await vault.lock()
            try await expectGone(needles)
        }
    }

    /// The password key as bytes and as base64, of both passwords.
    private func passwordKeys(_ device: Device, _ userid: String) async throws -> [ProcessMemory.Needle] {
        var needles: [ProcessMemory.Needle] = []
        for password in [password, next] {
            let key = try await device.settings.stretching.stretch(password, userid: userid, iterations: 10_000)
                .passwordKey.bytes
            needles += [.init(key), .init(base64Of: key)]
        }
        return needles
    }

    private func tokens(_ vault: Vault) async throws -> [ProcessMemory.Needle] {
        let secrets = try await vault.allSecrets()
        return [secrets.deviceToken, secrets.token].compactMap(\.self).map { ProcessMemory.Needle($0) }
    }

    /// The threads of transport and server may be about to drop what they had.
    private func expectGone(_ needles: [ProcessMemory.Needle]) async throws {
        try await eventually(within: .seconds(120), every: .milliseconds(100)) {
            try ProcessMemory.count(needles).allSatisfy { $0 == 0 }
        }
    }
}
