import CommandLineKit
import SalternClient

/// Items whose replaced versions a person can name: those that are here, and those that were deleted.
enum ReplacedItems {
    /// Finds the one item that is meant, first among those that are here.
    static func find(_ reference: ItemReference, in vault: Vault) async throws -> ItemSummary {
        do {
            return try await reference.find(in: vault)
        } catch let failure as CommandFailure where failure.code == "not_found" {
            if let deleted = try? reference.find(in: await vault.deletedItems()) { return deleted }
            // Of what is here no more there may still be versions.
            guard let id = ItemID(reference.text), let version = try await vault.replacedVersions(of: id).first else {
                throw failure
            }
            return ItemSummary(
                id: id, collection: version.collection, title: version.title, byteCount: version.byteCount,
                isUnsent: false)
        }
    }
}
