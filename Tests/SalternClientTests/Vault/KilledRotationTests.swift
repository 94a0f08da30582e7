import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// A device whose process is killed while it changes the data keys, at any system call by which its store writes, or at
/// any moment: afterwards both devices go on with everything, under the one key in force, and the printed code opens it.
@Suite struct KilledRotationTests {
    private static let rounds = PropertyTests.processes
    private let userid = "ada@example.org"
    private let password = Password("password")

    @Test func `a rotation that was killed has happened or not, and both devices are whole`() async throws {
        try await LiveServer.with { server in
            let phone = try TemporaryDirectory()
            let laptop = try Device("laptop", server)
            let code = try await begin(phone, server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            var expected: [ItemID: String] = [:]
            var keys: Set<DataKey.ID> = []
            for round in 0..<Self.rounds {
                // From both devices, of which the rotation's may know or not; and one that was not sent when it began.
                try await write("laptop \(round)", other, &expected)
                if round.isMultiple(of: 2) { try await other.sync() }
                do {
                    let vault = try await resume(phone, server)
                    try await write("phone \(round)", vault, &expected)
                }
                let life = try RotatingLife(round, phone, server)
                await #expect(processExitsWith: .signal(SIGKILL), "round \(round)") { [life = life as RotatingLife] in
                    try await life.live()
                }
                keys.insert(try await check(round, resume(phone, server), other, expected))
            }
            // Some were killed before the commit, and some after it.
            #expect(keys.count > 1 && keys.count < Self.rounds)
            let recovered = try Device("recovered", server)
            let vault = try await Vault.recover(
                recovered.settings, userid: userid, code: code, newPassword: Password("another"))
            try await vault.sync()
            #expect(try await vault.collection("notes", of: Note.self).all().mapValues(\.text) == expected)
        }
    }

    private func begin(_ phone: TemporaryDirectory, _ server: LiveServer) async throws -> RecoveryCode {
        let settings = VaultSettings.forTests(
            folder: phone.path, try CurlTransport(server.address()), name: "phone")
        let vault = try await Vault.signUp(settings, userid: userid, password: password)
        return try await vault.makeRecoveryCode(password: password)
    }

    private func resume(_ phone: TemporaryDirectory, _ server: LiveServer) async throws -> Vault {
        let settings = VaultSettings.forTests(
            folder: phone.path, try CurlTransport(server.address()), name: "phone")
        return try #require(try await Vault.resume(settings))
    }

    private func write(_ text: String, _ vault: Vault, _ expected: inout [ItemID: String]) async throws {
        expected[try await vault.collection("notes", of: Note.self).put(Note(text: text))] = text
    }

    /// - Returns: The key in force.
    private func check(
        _ round: Int, _ vault: Vault, _ other: Vault, _ expected: [ItemID: String]
    ) async throws -> DataKey.ID {
        try await syncOrLogIn(vault)
        try await syncOrLogIn(other)
        try await vault.sync()
        for vault in [vault, other] {
            #expect(
                try await vault.collection("notes", of: Note.self).all().mapValues(\.text) == expected,
                "round \(round)")
            let kinds = try await vault.notices().map(\.kind)
            #expect(kinds.allSatisfy { $0 == .recoveryCodeOutdated }, "round \(round): \(kinds)")
            #expect(try await vault.unsentCount() == 0, "round \(round)")
        }
        let (token, keyring) = try await vault.secrets()
        let page = try await vault.api.listChanges(since: nil, limit: 500, reportsDeletions: false, token)
        #expect(!page.more)
        #expect(
            try Set(page.changes.compactMap(\.body?.bytes).map { try SealedBox.keyID(of: $0) })
                == [keyring.currentKey.id], "round \(round)")
        return keyring.currentKey.id
    }

    /// A rotation that has happened has ended the sessions of all other devices; that of its own stays.
    private func syncOrLogIn(_ vault: Vault) async throws {
        do {
            try await vault.sync()
        } catch VaultError.sessionEnded {
            try await vault.logInAgain(password: password)
            try await vault.sync()
        }
    }
}

/// One process that changes the keys, and how it ends.
private struct RotatingLife: Codable, Sendable {
    let folder: String
    let base: String
    let pin: String
    let anchor: [UInt8]
    /// What happens at which call; nil for a kill after so many microseconds.
    let fault: WriteFault?
    let moment: Int

    init(_ round: Int, _ folder: TemporaryDirectory, _ server: LiveServer) throws {
        let address = try server.address()
        var random = SeededGenerator(seed: UInt64(round))
        self.folder = folder.path
        base = address.base
        pin = address.pins[0]
        anchor = address.anchor ?? []
        let faults: [WriteFault] = [.killBefore, .killWithin, .killAfter]
        fault = round % 4 < 3 ? faults[round % 4] : nil
        moment = fault == nil ? Int.random(in: 0...250_000, using: &random) : Int.random(in: 1...60, using: &random)
    }

    /// Works until it is killed.
    func live() async throws {
        if let fault {
            guard fault.happen(at: moment) != nil else { return }
        } else {
            let moment = UInt32(moment)
            Thread.detachNewThread {
                usleep(moment)
                kill(getpid(), SIGKILL)
            }
        }
        let server = CurlTransport.Server(base: base, pins: [pin], anchor: anchor)
        var settings = VaultSettings.forTests(folder: folder, try CurlTransport(server), name: "phone")
        // Several requests for a handful of items.
        settings.limits.batch = 4
        if let vault = try await Vault.resume(settings) {
            try await vault.rotateKeys(password: Password("password"))
        }
        kill(getpid(), SIGKILL)
    }
}
