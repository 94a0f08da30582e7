internal import Cryptography
internal import Foundation

/// The limits of the account's plan, for checks before content is stored or sent.
final class PlanLimits {
    private let session: VaultSession
    private let store: Store
    /// True when the limits may be fetched although the call does not need the server. False after an attempt without a
    /// reply.
    private var mayAsk = true
    /// True when an item was rejected by an earlier limit of the plan.
    private var isInDoubt = false

    init(_ session: VaultSession) {
        self.session = session
        store = session.store
    }

    /// Fetches plan, limits and usage.
    func account() async throws(VaultError) -> AccountDescription {
        let token = try session.open.token
        let account = try await session.call { api throws(APIError) in try await api.getAccount(token) }
        try note(account.limits)
        return account
    }

    /// Fetches the unused part of the plan.
    func room() async throws(VaultError) -> PlanRoom { PlanRoom(try await account()) }

    /// Stores the limits for use without network.
    func note(_ limits: AccountDescription.Limits) throws(VaultError) {
        if try session.stored({ try store.number(.itemBytes) }) == limits.itemBytes { return }
        var concerned: Set<ItemID> = []
        try session.stored {
            try store.set(.itemBytes, limits.itemBytes)
            for id in try store.changedIDs(limit: .max) where try store.change(id)?.content != nil {
                concerned.insert(id)
            }
        }
        // Their chance to be sent has changed.
        if !concerned.isEmpty { session.notify(concerned) }
    }

    /// Returns the last limit of one item that the server returned. Without network there is no limit.
    func itemByteLimit() async throws(VaultError) -> Int64 {
        if let known = try session.stored({ try store.number(.itemBytes) }) { return known }
        // Requested once, so that writes without network wait at most once.
        guard mayAsk else { return .max }
        mayAsk = false
        guard let account = try? await session.api.getAccount(session.open.token) else { return .max }
        try note(account.limits)
        return account.limits.itemBytes
    }

    /// Records that the server is reachable.
    func noteReply() { mayAsk = true }

    /// Fetches the plan again if the server may never accept the unsent changes, so that the reason can be shown.
    /// - Parameter hasUnsent: True when the server has rejected changes.
    func recheck(hasUnsent: Bool) async {
        guard isInDoubt || hasUnsent else { return }
        isInDoubt = false
        _ = try? await account()
    }

    /// Rejects an item that is longer than the plan allows, because it would stay unsent permanently.
    /// - Throws: ``VaultError/noRoom(_:)``
    func refuseTooLong(_ item: PlainItem) throws(VaultError) {
        let allowed = try session.stored { try store.number(.itemBytes) } ?? .max
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

extension PlainItem {
    /// Returns the exceeded limit; nil when the item fits in the plan's items and in a batch.
    func shortage(allowed: Int64) -> PlanShortage? {
        let title = title.map { SealedBox.sealedCount($0.utf8.count) } ?? 0
        return PlanShortage(itemOf: Int64(SealedBox.sealedCount(body.count) + title), allowed: allowed)
    }
}
