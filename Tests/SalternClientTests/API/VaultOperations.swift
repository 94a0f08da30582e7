import Cryptography

@testable import SalternClient

extension OperationsTests {
    private static let vault = SharedVaultID.random()
    private static let head = VaultHead(number: 1, hash: [1])
    private static let item = ItemContent(collection: "notes", format: "saltern-1", body: [1])

    private static func items(_ api: SalternAPI) -> SalternAPI { api.of(.vault(vault), head: 1) }

    /// The operations of shared vaults and of their items.
    static let vaultCalls: [String: Call] = [
        "createVault": { _ = try await $0.createVault([1], token) },
        "listVaults": { _ = try await $0.listVaults(token) },
        "getVault": { _ = try await $0.getVault(vault, token) },
        "deleteVault": { try await $0.deleteVault(vault, token) },
        "getVaultLog": { _ = try await $0.getVaultLog(vault, after: 0, token) },
        "appendEntry": { _ = try await $0.appendEntry(vault, VaultEntryRequest([1]), token) },
        "putEntriesBack": { _ = try await $0.putEntriesBack(vault, [[1]], token) },
        "endRecovery": { try await $0.endRecovery(vault, head, token) },
        "claimMember": { try await $0.claimMember(vault, .random(), head, signature: [1], token) },
        "getSealList": { _ = try await $0.getSealList(vault, 7, token) },
        "putSealList": { try await $0.putSealList(vault, 7, [1], token) },
        "putVaultBoxes": { try await $0.putVaultBoxes(vault, generation: 1, [], [], token) },
        "removeOwnBox": { try await $0.removeOwnBox(vault, token) },
        "putSeenHead": { try await $0.putSeenHead(vault, head, signature: [1], token) },
        "acceptOwnership": { _ = try await $0.acceptOwnership(vault, [1], token) },
        "listInvitations": { _ = try await $0.listInvitations(vault, token) },
        "createInvitation": {
            _ = try await $0.createInvitation(vault, [1], tokenHash: [1], preview: [1], keyBox: [1], token)
        },
        "openInvitation": {
            _ = try await $0.openInvitation(.random(), token: SecureRandom.secureBytes(32))
        },
        "acceptInvitation": {
            _ = try await $0.acceptInvitation(
                .random(), [1], token: SecretBytes(SecureRandom.secureBytes(32)), token)
        },
        "listItemsInVault": { _ = try await items($0).listItems(token) },
        "getItemInVault": { _ = try await items($0).getItem(.random(), token) },
        "putItemInVault": { _ = try await items($0).putItem(.random(), item, .absent, token) },
        "getItemBodyInVault": { _ = try await items($0).getItemBody(.random(), token) },
        "putItemBodyInVault": { _ = try await items($0).putItemBody(.random(), item, .absent, token) },
        "deleteItemInVault": { _ = try await items($0).deleteItem(.random(), .present, token) },
        "restoreItemInVault": { _ = try await items($0).restoreItem(.random(), .present, token) },
        "listVersionsInVault": { _ = try await items($0).listVersions(.random(), token) },
        "getVersionInVault": { _ = try await items($0).getVersion(.random(), Revision(7), token) },
        "writeBatchInVault": { _ = try await items($0).writeBatch([], token) },
        "listChangesInVault": { _ = try await items($0).listChanges(token) },
    ]
}
