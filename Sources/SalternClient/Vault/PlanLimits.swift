internal import Cryptography
internal import Foundation

/// The limits of the plan for the items of an owner, for checks before content is stored or sent. Those of a shared
/// vault are in the plan of the vault's owner.
final class PlanLimits {
    private let scope: ItemScope
    private let store: Store
    /// True when the limits may be fetched although the call does not need the server. False after an attempt without a
    /// reply.
    private var mayAsk = true
    /// True when an item was rejected by an earlier limit of the plan.
    private var isInDoubt = false

    init(_ scope: ItemScope) {
        self.scope = scope
        store = scope.store
    }

    /// Fetches plan, limits and usage of the account.
    func account() async throws(VaultError) -> AccountDescription {
        let token = try scope.open.token
        let account = try await scope.session.call { api throws(APIError) in try await api.getAccount(token) }
        if scope.owner == .account { try note(itemBytes: account.limits.itemBytes) }
        return account
    }

    /// Fetches the limits and the usage of the owner's items.
    func usage() async throws(VaultError) -> ItemUsage {
        if scope.owner == .account { return ItemUsage(try await account()) }
        let (api, token) = (scope.api, try scope.open.token)
        let usage = try await scope.session.call { _ throws(APIError) in try await api.getUsage(token) }
        try note(itemBytes: usage.limits.itemBytes)
        return usage
    }

    /// Fetches the unused part of the plan.
    func room() async throws(VaultError) -> PlanRoom { PlanRoom(try await usage()) }

    /// Stores the limit of an item for use without network.
    func note(itemBytes: Int64) throws(VaultError) {
        if try scope.stored({ try store.number(.itemBytes) }) == itemBytes { return }
        var concerned: Set<ItemID> = []
        try scope.stored {
            try store.set(.itemBytes, itemBytes)
            for id in try store.changedIDs(limit: .max) where try store.change(id)?.content != nil {
                concerned.insert(id)
            }
        }
        // Their chance to be sent has changed.
        if !concerned.isEmpty { scope.notify(concerned) }
    }

    /// Returns the last limit of one item that the server returned. Without network there is no limit.
    func itemByteLimit() async throws(VaultError) -> Int64 {
        if let known = try scope.stored({ try store.number(.itemBytes) }) { return known }
        // Requested once, so that writes without network wait at most once.
        guard mayAsk else { return .max }
        mayAsk = false
        guard let limits = try? await scope.api.getUsage(scope.open.token).limits else { return .max }
        try note(itemBytes: limits.itemBytes)
        return limits.itemBytes
    }

    /// Records that the server is reachable.
    func noteReply() { mayAsk = true }

    /// Fetches the plan again if the server may never accept the unsent changes, so that the reason can be shown.
    /// - Parameter hasUnsent: True when the server has rejected changes.
    func recheck(hasUnsent: Bool) async {
        guard isInDoubt || hasUnsent else { return }
        isInDoubt = false
        _ = try? await usage()
    }

    /// Rejects an item that is longer than the plan allows, because it would stay unsent permanently.
    /// - Throws: ``VaultError/noRoom(_:)``
    func refuseTooLong(_ item: PlainItem) throws(VaultError) {
        let allowed = try scope.stored { try store.number(.itemBytes) } ?? .max
        if let shortage = item.shortage(allowed: allowed) {
            // The plan may have changed: the next sync fetches it.
            isInDoubt = true
            throw .noRoom(shortage)
        }
    }

    /// Rejects a body that is too long, before it is read and before the rest of the item exists. The last known limit
    /// is fetched again first, if possible.
    func refuseTooLong(bodyOf byteCount: Int64) async throws(VaultError) {
        // So little content fits in every plan's item.
        if byteCount <= 4 << 10 { return }
        // The exact length of very long content is not relevant.
        let needed = Int64(SealedBox.sealedCount(Int(min(byteCount, 1 << 40))))
        let known = try await itemByteLimit()
        if PlanShortage(itemOf: needed, allowed: known) == nil { return }
        let allowed = (try? await room())?.itemBytes ?? known
        if let shortage = PlanShortage(itemOf: needed, allowed: allowed) { throw .noRoom(shortage) }
    }
}

/// The limits of an owner's items, and their use.
struct ItemUsage: Decodable, Sendable {
    struct Limits: Decodable, Sendable {
        let deletedDays: Int
        let items: Int64
        let itemBytes: Int64
        let bytes: Int64
    }

    struct Usage: Decodable, Sendable {
        let items: Int64
        let bytes: Int64
    }

    let limits: Limits
    let usage: Usage

    init(_ account: AccountDescription) {
        limits = Limits(
            deletedDays: account.limits.deletedDays, items: account.limits.items,
            itemBytes: account.limits.itemBytes, bytes: account.limits.bytes)
        usage = Usage(items: account.usage.items, bytes: account.usage.bytes)
    }
}

extension ItemUsage.Limits {
    /// The largest number of chunks that a device removes from a shared vault in a day.
    ///
    /// The server keeps them like deleted items. Without room for both, it drops content that another member can
    /// restore. A quarter of the vault in a week is also its allowance for a writer.
    var dailySweep: Int {
        let chunk = max(min(itemBytes, Int64(SealedBox.sealedCount(Attachment.chunkByteCount))), 1)
        return Int(clamping: max(min(items, bytes / chunk) / 28, 1))
    }
}

extension PlainItem {
    /// Returns the exceeded limit; nil when the item fits in the plan's items and in a batch.
    func shortage(allowed: Int64) -> PlanShortage? {
        let title = title.map { SealedBox.sealedCount($0.utf8.count) } ?? 0
        return PlanShortage(itemOf: Int64(SealedBox.sealedCount(body.count) + title), allowed: allowed)
    }
}
