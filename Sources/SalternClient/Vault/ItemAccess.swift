package import Cryptography
package import Foundation

/// The items of one owner, the account or a shared vault, for a command that serves both.
///
/// ``Vault`` has the documentation of each function.
package protocol ItemAccess: Sendable {
    // MARK: Reading

    func items(in collection: String?) async throws(VaultError) -> [ItemSummary]
    func summary(of id: ItemID) async throws(VaultError) -> ItemSummary?
    func item(_ id: ItemID) async throws(VaultError) -> PlainItem?
    func version(of id: ItemID) async throws(VaultError) -> ItemVersion?
    func unsentItems(limit: Int) async throws(VaultError) -> [ItemSummary]
    func deletedItems() async throws(VaultError) -> [ItemSummary]

    // MARK: Content

    func wholeItem(_ id: ItemID) async throws(VaultError) -> PlainItem?
    func wholeContent(of body: SecureBytes) async throws(VaultError) -> SecureBytes
    func piece(_ index: Int, of attachment: Attachment, keepsCopy: Bool) async throws(VaultError) -> SecureBytes
    func fetchedPieces(of attachment: Attachment, in source: AttachmentSource) async throws(VaultError) -> Int
    func body(holding source: AttachmentSource) async throws(VaultError) -> SecureBytes
    func body(holding source: AttachmentSource, insteadOf body: SecureBytes) async throws(VaultError) -> SecureBytes
    func body(holding content: SecureBytes, insteadOf body: SecureBytes) async throws(VaultError) -> SecureBytes
    func refuseTooLong(bodyOf byteCount: Int64) async throws(VaultError)

    // MARK: Writing

    @discardableResult
    func put(
        _ item: PlainItem, _ id: ItemID, in collection: String, over seen: ItemVersion?
    ) async throws(VaultError) -> ItemID
    func delete(_ id: ItemID) async throws(VaultError)
    func restore(_ id: ItemID) async throws(VaultError)
    func discardChange(_ id: ItemID) async throws(VaultError)

    // MARK: Versions

    func replacedVersions(of id: ItemID?) async throws(VaultError) -> [ReplacedVersion]
    func item(_ id: ItemID, replaced number: Int64) async throws(VaultError) -> PlainItem
    func restore(_ id: ItemID, replaced number: Int64) async throws(VaultError)
    @discardableResult
    func fetchVersions(of id: ItemID) async throws(VaultError) -> VersionReport

    // MARK: Sync

    func notices() async throws(VaultError) -> [Notice]
    func forget(_ notice: Notice) async throws(VaultError)
    func unsentCount() async throws(VaultError) -> Int
    @discardableResult
    func agreeToDeletions(in collection: String?) async throws(VaultError) -> SyncReport
    func heldDeletions() async throws(VaultError) -> [HeldDeletion]

    // MARK: Documents

    @discardableResult
    func exportDocuments(to file: URL, collection: String?) async throws(VaultError) -> DocumentExport
    @discardableResult
    func importDocuments(from file: URL) async throws(VaultError) -> DocumentImport
}

extension SyncReport {
    /// The report before the first round.
    package static var empty: SyncReport { SyncReport() }
}
