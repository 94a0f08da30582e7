import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// Devices of a person whose data keys are changed.
final class RotationFixture: Sendable {
    /// Their folders are there for as long as the test runs.
    private let devices = Mutex<[Device]>([])
    let userid = "ada@example.org"
    let password = Password("correct horse battery staple")

    func signUp(_ server: LiveServer) async throws -> (Device, Vault) {
        var phone = try Device("phone", server)
        // Several requests for a handful of items.
        phone.settings.limits.batch = 2
        let settings = phone.settings
        devices.withLock { [phone] in $0.append(phone) }
        return (phone, try await Vault.signUp(settings, userid: userid, password: password))
    }

    func logIn(_ name: String, _ server: LiveServer) async throws -> (Device, Vault) {
        let device = try Device(name, server)
        devices.withLock { $0.append(device) }
        return (device, try await Vault.logIn(device.settings, userid: userid, password: password))
    }

    func notes(_ vault: Vault) -> VaultCollection<Note> { vault.collection("notes") }

    /// What a new device reads; and everything on the server is under the one key of the keyring.
    /// - Returns: That key.
    @discardableResult
    func check(_ server: LiveServer, has expected: [ItemID: Note]) async throws -> DataKey.ID {
        let (_, vault) = try await logIn("new", server)
        try await vault.sync()
        #expect(try await notes(vault).all() == expected)
        #expect(try await vault.notices().isEmpty)
        let (token, keyring) = try await vault.secrets()
        let page = try await server.api().listChanges(since: nil, limit: 200, reportsDeletions: false, token)
        #expect(!page.more)
        let bodies = page.changes.compactMap(\.body?.bytes) + page.changes.compactMap(\.title?.bytes)
        #expect(keyring.dataKeys.count == 1)
        #expect(try Set(bodies.map { try SealedBox.keyID(of: $0) }) == [keyring.currentKey.id])
        return keyring.currentKey.id
    }
}
