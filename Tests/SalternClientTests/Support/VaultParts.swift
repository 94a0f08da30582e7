import Foundation

@testable import SalternClient

/// Access to the parts of a vault, which belong to its actor.
extension Vault {
    /// The number of versions that were opened to search for manifests.
    var readCount: Int { attachments.index.readCount }

    /// The state of sharing the store with other processes.
    var lending: StoreLending { sharing.lending }

    func storeID() throws(VaultError) -> ItemID { try session.stored { try session.store.storeID() } }

    func note(_ limits: AccountDescription.Limits) throws(VaultError) { try plan.note(limits) }

    @discardableResult
    func sweepChunks(at moment: Date, age: Int64?) async throws(VaultError) -> Int {
        try await attachments.sweeper.sweep(at: moment, age: age) { () async throws(VaultError) in
            try await round()
        }.count
    }

    func sweepWhenDue(at moment: Date, age: Int64?) async -> SyncReport? {
        await attachments.sweeper.sweepWhenDue(at: moment, age: age) { () async throws(VaultError) in
            try await round()
        }
    }

    func forgetUnnamedWaiting(at age: Int64) throws(VaultError) { try attachments.waiting.forgetUnnamed(at: age) }
}
