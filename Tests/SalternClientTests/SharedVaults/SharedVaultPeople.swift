import Foundation
import SalternTesting
import VaultLog

@testable import SalternClient

/// People with an account and devices each, on one server with shared vaults.
final class SharedVaultPeople {
    static let url = URL(filePath: "/").appending(path: "unused")
    static let base = URL(string: "https://vaults.example.org") ?? url
    static let password = Password("correct horse battery staple")

    let vaults = MemoryVaults()
    private var accounts: [String: MemoryServer] = [:]
    private var folders: [TemporaryDirectory] = []
    /// The ways of the devices to the server, in the order of their opening.
    private(set) var links: [LossyTransport] = []

    /// Opens a device of a person, whose account the first one creates.
    func device(_ name: String) async throws -> SalternClient.Vault {
        let folder = try TemporaryDirectory(.memory)
        folders.append(folder)
        let isNew = accounts[name] == nil
        let account = accounts[name] ?? MemoryServer()
        accounts[name] = account
        let link = LossyTransport(vaults.transport(account))
        links.append(link)
        let settings = VaultSettings.forTests(folder: folder.path, link, name: name)
        return isNew
            ? try await Vault.signUp(settings, userid: "\(name)@example.org", password: Self.password)
            : try await Vault.logIn(settings, userid: "\(name)@example.org", password: Self.password)
    }

    /// Lets a person join by an invitation without a code.
    func join(
        _ shared: SharedVault, _ vault: SalternClient.Vault, as name: String, role: SharedRole = .writer
    ) async throws -> SharedVault {
        let invitation = try await shared.invite(base: Self.base, role: role, code: .none, label: "for \(name)")
        return try await vault.shared.join(invitation.link, code: nil, as: name)
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
}
