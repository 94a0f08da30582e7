import Foundation
import SalternTesting
import Testing
import VaultLog

@testable import SalternClient

/// People with an account and devices each, on one server with shared vaults.
final class SharedVaultPeople {
    static let url = URL(filePath: "/").appending(path: "unused")
    static let base = URL(string: "https://vaults.example.org") ?? url
    static let password = Password("correct horse battery staple")

    let vaults = MemoryVaults()
    private var accounts: [String: MemoryServer] = [:]
    private var devices: [PersonDevice] = []
    /// The ways of the devices to the server, in the order of their opening.
    var links: [LossyTransport] { devices.map(\.link) }

    /// Opens a device of a person, whose account the first one creates.
    func device(_ name: String) async throws -> SalternClient.Vault { try await person(name).vault() }

    /// Opens a device of a person, whose process can end.
    func person(_ name: String) async throws -> PersonDevice {
        let isNew = accounts[name] == nil
        let account = accounts[name] ?? MemoryServer()
        accounts[name] = account
        let device = try await PersonDevice(name, account.account, vaults.transport(account), isFirst: isNew)
        devices.append(device)
        return device
    }

    /// Lets a person join by an invitation without a code.
    @discardableResult
    func join(
        _ shared: SharedVault, _ vault: SalternClient.Vault, as name: String, role: SharedRole = .writer
    ) async throws -> SharedVault {
        let invitation = try await shared.invite(base: Self.base, role: role, code: .none, label: "for \(name)")
        return try await vault.shared.join(invitation.link, code: nil, as: name)
    }

    /// Advances the clocks of the server and of all devices that follow it.
    func advance(_ seconds: TimeInterval) { vaults.withState { $0.clockOffset += seconds } }

    /// The state of a vault on the server.
    func onServer(_ id: SharedVaultID) -> MemoryVaults.Vault? {
        vaults.withState { $0.vaults[id.description] }
    }

    /// Changes a vault on the server, as an attacker can.
    func change(_ id: SharedVaultID, _ body: @Sendable (inout MemoryVaults.Vault) -> Void) {
        vaults.withState { state in
            guard var vault = state.vaults[id.description] else { return }
            body(&vault)
            state.vaults[id.description] = vault
        }
    }
}

/// A device of a person with its store in memory, whose process can end at a request, or at a call that writes its store.
final class PersonDevice {
    let name: String
    let account: AccountID
    let link: LossyTransport
    private let folder: TemporaryDirectory
    private let settings: VaultSettings
    private var life = StoreLife()
    private var current: SalternClient.Vault?
    /// The number of ends of its process.
    private(set) var ends = 0

    init(_ name: String, _ account: AccountID, _ server: any HTTPTransport, isFirst: Bool) async throws {
        self.name = name
        self.account = account
        folder = try TemporaryDirectory(.memory)
        link = LossyTransport(server)
        settings = .forTests(folder: folder.path, link, name: name)
        try beginLife()
        let userid = "\(name)@example.org"
        current =
            isFirst
            ? try await Vault.signUp(settings, userid: userid, password: SharedVaultPeople.password)
            : try await Vault.logIn(settings, userid: userid, password: SharedVaultPeople.password)
    }

    deinit { StoreCalls.concern(nil, folder: folder.path) }

    private func beginLife() throws {
        life = StoreLife()
        guard StoreCalls.concern(life, folder: folder.path) else { throw StoreError.unusable }
        link.belong(to: life)
    }

    func vault() throws -> SalternClient.Vault { try #require(current) }

    /// Lets the process end in an exchange from now on.
    func kill(inExchange number: Int, _ moment: LossyTransport.Moment) {
        let life = life
        link.interrupt(LossyTransport.Interruption(exchange: number, moment: moment) { life.end() })
    }

    /// Lets the process end at a call that writes its store.
    func kill(_ fault: WriteFault, atCall number: Int) { life.arm(fault, at: number) }

    /// Starts another process, if the former one has ended.
    /// - Returns: True if it had ended.
    @discardableResult
    func startAgainIfEnded() async throws -> Bool {
        _ = link.endInterruption()
        guard life.hasEnded else {
            _ = life.disarm()
            return false
        }
        ends += 1
        current = nil
        try beginLife()
        current = try await Vault.resume(settings)
        return true
    }

    /// The notes of a shared vault.
    func notes(_ id: SharedVaultID) throws -> VaultCollection<Note> {
        VaultCollection(name: "notes", vault: try vault(), owner: .vault(id), schema: ItemSchema())
    }

    /// The texts of the notes of a shared vault, as a person reads them.
    func texts(_ id: SharedVaultID) async throws -> [ItemID: String] {
        try await notes(id).contents().items.mapValues(\.text)
    }
}

extension SalternClient.Vault {
    /// The present description of a vault, which exists.
    func shared(_ id: SharedVaultID) async throws -> SharedVault {
        guard let present = try await self.shared.vault(id) else { throw VaultError.shared(.unknownVault) }
        return present
    }

    func refreshed(_ id: SharedVaultID) async throws -> SharedVault {
        try await sync()
        return try await shared(id)
    }

    /// The number of unsent edits of a shared vault.
    func unsentCount(of id: SharedVaultID) async throws -> Int {
        try await OwnedItems(self, of: .vault(id)).unsentCount()
    }

    /// The texts of deleted and replaced notes of a shared vault on this device.
    func keptTexts(of id: SharedVaultID) async throws -> Set<String> {
        let items = OwnedItems(self, of: .vault(id))
        var kept: Set<String> = []
        for version in try await items.replacedVersions() {
            let item = try await items.item(version.item, replaced: version.number)
            if let note = try? JSONDecoder().decode(Note.self, from: item.body.data) { kept.insert(note.text) }
        }
        for summary in try await items.deletedItems() {
            let body = try await use(.vault(id)) { (parts) throws(VaultError) -> SecureBytes? in
                guard let item = try parts.scope.stored({ try parts.scope.store.trashed(summary.id) }) else {
                    return nil
                }
                return try? parts.scope.sealer.open(item.content, summary.id).item.body
            }
            if let body, let note = try? JSONDecoder().decode(Note.self, from: body.data) { kept.insert(note.text) }
        }
        return kept
    }
}

extension SecureBytes {
    fileprivate var data: Data { withUnsafeBytes { Data($0) } }
}
