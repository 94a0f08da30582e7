import CommandLineKit
import SalternClient

/// Items whose replaced versions can be named: present ones, and deleted ones.
enum ReplacedItems {
    /// Finds the one matching item, first among present ones.
    static func find(_ reference: ItemReference, in items: OwnedItems) async throws -> ItemSummary {
        do {
            return try await reference.find(in: items)
        } catch let failure as CommandFailure where failure.code == "not_found" {
            if let deleted = try? reference.find(in: await items.deletedItems()) { return deleted }
            // A removed item may still have versions.
            guard let id = ItemID(reference.text), let version = try await items.replacedVersions(of: id).first else {
                throw failure
            }
            return ItemSummary(
                id: id, collection: version.collection, title: version.title, byteCount: version.byteCount,
                isUnsent: false)
        }
    }
}
