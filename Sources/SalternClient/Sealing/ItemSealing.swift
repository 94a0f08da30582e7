internal import Cryptography

/// Seals and opens the items of one owner: of an account (``Sealer``) or of a shared vault.
///
/// The engine of the sync and all readers of the store use this interface, so they are the same for both owners.
protocol ItemSealing: Sendable {
    /// Opens a version that this device has accepted.
    func open(_ content: ItemContent, _ id: ItemID) throws(SealedBox.Failure) -> OpenedItem

    /// Opens a version of the server, and decides if it counts.
    /// - Parameters:
    ///   - known: The last accepted version on this device.
    ///   - heldSince: The number of the log's head at which this device had the version and could not judge it.
    func judge(
        _ version: ItemState, _ content: ItemContent, known: StoredItem?, heldSince: Int64?
    ) -> ItemVerdict

    /// Ends a finding about the version that a sent change has replaced.
    func noteReplaced(_ id: ItemID)

    /// Seals an edit with the present key.
    /// - Throws: ``SealedBox/Failure/unknownKey`` without ``canWrite``.
    func seal(
        _ item: PlainItem, _ id: ItemID, collection: String, _ edit: SealedBox.Edit
    ) throws(SealedBox.Failure) -> ItemContent

    /// Returns true for content under a key that new content no longer has.
    func isOutdated(_ content: ItemContent) -> Bool

    /// Returns the same edit under the present key; nil for content that `old` cannot open.
    func renewed(_ content: ItemContent, _ id: ItemID, from old: any ItemSealing) -> ItemContent?

    /// Returns the 32 bytes by which the next edit names a version as its predecessor; nil for one that does not open.
    func hash(of content: ItemContent, _ id: ItemID) -> [UInt8]?

    /// Returns true when two versions are the same edit, the first one under the present key.
    func isSameEdit(_ version: ItemContent, as known: ItemContent, _ id: ItemID) -> Bool

    /// Returns true when sealed content has a key, or names an entry of the log, that may arrive later.
    func isUnderUnknownKey(_ content: ItemContent) -> Bool

    /// True when a version names an entry of the vault's log that this device does not have.
    func namesUnknownEntry(_ content: ItemContent, _ id: ItemID) -> Bool

    /// Returns true when only further entries of the log can let a version count. After the log was fetched, that
    /// version never counts.
    func needsEntries(_ content: ItemContent, _ reason: PutAsideReason?) -> Bool

    /// True while members put back entries of a vault's log that the server has lost.
    var isRecovering: Bool { get }

    /// Names the log, the keys and the lists by which versions are judged and sealed. Nil for an account, which has its
    /// keys in the keyring.
    var stamp: [UInt8]? { get }

    /// Returns the form in which an unsent edit is sent.
    /// - Parameter wasSent: True when the server may have received this content.
    func unsentForm(of content: ItemContent, _ id: ItemID, wasSent: Bool) -> UnsentForm

    /// Returns the reason for which an accepted version does not count by the present log and lists.
    func rejection(of item: StoredItem) -> PutAsideReason?

    /// Returns the reason for which a change with an edit of another member does not count by the present log and
    /// lists. Such a change is an accepted version that a restored server has lost.
    func rejection(ofChange content: ItemContent, _ id: ItemID) -> PutAsideReason?

    /// Returns the number of the entry at which a version that this device has sent was accepted last.
    func judgedAt(ofSent content: ItemContent, _ id: ItemID) -> Int64?

    /// True in a shared vault while lists decide about the edits of writers that were cut off.
    var hasSealLists: Bool { get }

    /// False where nothing can be sealed now: the account may only read, or the present key has not arrived.
    var canSeal: Bool { get }

    /// True while nothing is sent, because of a finding about the vault.
    var isStopped: Bool { get }

    /// False where the account may only read, or not even that any more.
    var canWrite: Bool { get }

    /// True where this device removes chunks that no item names: in a shared vault, on managers' devices.
    var canSweep: Bool { get }

    /// The number of the latest known entry of the vault's log, which writes name; nil for an account.
    var head: Int64? { get }

    /// The name that this member of a vault claims; nil for an account.
    var authorName: String? { get }

    /// Returns the name of a chunk, which depends on its content and on a key.
    func chunkID(_ attachment: ItemID, _ index: Int, _ content: SecureBytes) -> ItemID

    /// Returns true for a name of the chunk, also under an earlier key.
    func isChunkID(_ id: ItemID, _ attachment: ItemID, _ index: Int, _ content: SecureBytes) -> Bool

    func sealChunk(_ content: SecureBytes, _ id: ItemID) throws(SealedBox.Failure) -> ItemContent

    func openChunk(_ content: ItemContent, _ id: ItemID) throws(SealedBox.Failure) -> SecureBytes

    /// Returns a key from which names of imported copies are derived.
    /// - Throws: ``SharedVaultError/keyMissing`` in a shared vault whose first key has not arrived.
    func documentKey() throws(VaultError) -> SecureBytes
}

/// The content of a version and its place in the history of its item.
struct OpenedItem: Sendable {
    var item: PlainItem
    var edit: SealedBox.Edit
    /// The author, in a shared vault.
    var author: ItemAuthor?
}

/// The author of an edit in a shared vault.
struct ItemAuthor: Hashable, Sendable {
    /// The id of the member, 16 bytes.
    var member: [UInt8]
    /// The name that the member claims.
    var name: String
    /// True for an edit of this account.
    var isOwn: Bool
}

/// The decision about a version of the server.
enum ItemVerdict: Sendable {
    case accepted(OpenedItem)
    /// Its key is unknown, or its bytes are not authentic.
    case unreadable
    /// It opens, and the rules of the vault do not accept it.
    case putAside(PutAsideReason)

    /// The content of an accepted version.
    var opened: OpenedItem? {
        guard case .accepted(let opened) = self else { return nil }
        return opened
    }
}

/// The form in which an unsent edit is sent.
enum UnsentForm: Sendable {
    /// The stored one.
    case present
    /// Another one, with its edit number: under the present key, or signed by the present member.
    case other(ItemContent, edit: UInt64)
    /// None. The key is missing, or the edit does not count.
    case none
}

/// The rule by which a version in a shared vault does not count.
struct PutAsideReason: RawRepresentable, Hashable, Sendable {
    let rawValue: String

    /// The version names an entry that the log does not have, and no present writer has signed that.
    static let unprovenHead = PutAsideReason(rawValue: "unprovenHead")

    private static let open: Set = ["unknownHead", unprovenHead.rawValue, "awaitsSeal", "listMissing"]

    /// True while no manager has decided about the version, or the decision has not arrived.
    var isOpen: Bool { Self.open.contains(rawValue) }

    /// True for an edit whose author had an earlier log than the author of the known version.
    var isEarlier: Bool { rawValue == "headWentBack" }

    /// True for an edit of a writer that was cut off, until a manager's device has sealed the writer.
    var awaitsSeal: Bool { rawValue == "awaitsSeal" }

    /// True while this device lacks the entry that the version names.
    var lacksEntry: Bool { rawValue == "unknownHead" || self == .unprovenHead }

    /// True when further entries or lists may let the version count.
    var mayPass: Bool { isOpen || rawValue == "notListed" }
}

extension ItemSealing {
    /// True for the items of a shared vault.
    var isOfVault: Bool { head != nil }

    var stamp: [UInt8]? { nil }

    var canSeal: Bool { true }

    func unsentForm(of content: ItemContent, _ id: ItemID, wasSent: Bool) -> UnsentForm { .present }

    func rejection(of item: StoredItem) -> PutAsideReason? { nil }

    func rejection(ofChange content: ItemContent, _ id: ItemID) -> PutAsideReason? { nil }

    func judgedAt(ofSent content: ItemContent, _ id: ItemID) -> Int64? { head }

    func stillCounts(_ item: StoredItem) -> Bool { rejection(of: item) == nil }

    var hasSealLists: Bool { false }

    var isStopped: Bool { false }

    var canSweep: Bool { canSeal && !isStopped }

    func namesUnknownEntry(_ content: ItemContent, _ id: ItemID) -> Bool { false }

    func needsEntries(_ content: ItemContent, _ reason: PutAsideReason?) -> Bool { false }

    var isRecovering: Bool { false }

    func isChunkID(_ id: ItemID, _ attachment: ItemID, _ index: Int, _ content: SecureBytes) -> Bool {
        chunkID(attachment, index, content) == id
    }

    func judge(_ version: ItemState, _ content: ItemContent, known: StoredItem?) -> ItemVerdict {
        judge(version, content, known: known, heldSince: nil)
    }

    func judge(
        _ version: ItemState, _ content: ItemContent, known: StoredItem?, heldSince: Int64?
    ) -> ItemVerdict {
        (try? open(content, version.id)).map { .accepted($0) } ?? .unreadable
    }

    /// Returns the same content under the present key.
    /// - Returns: nil for content that is not outdated, and for content that `old` cannot open.
    func resealed(
        _ content: ItemContent, _ id: ItemID, from old: any ItemSealing, asNextEdit: Bool = false
    ) -> ItemContent? {
        guard isOutdated(content) else { return nil }
        if !asNextEdit { return renewed(content, id, from: old) }
        guard let known = try? old.open(content, id),
            let sealed = try? seal(
                known.item, id, collection: content.collection, old.next(known.edit, after: content, id)),
            // Content that cannot be opened again would be lost.
            let opened = try? open(sealed, id), opened.item == known.item
        else { return nil }
        return sealed
    }

    var authorName: String? { nil }

    // MARK: Edits

    /// Returns the edit after a version.
    func next(_ edit: SealedBox.Edit, after content: ItemContent, _ id: ItemID) -> SealedBox.Edit {
        edit.next(afterHash: previous(content, id))
    }

    /// Returns the edit that creates an item again after its deletion.
    func creating(
        _ edit: SealedBox.Edit, after content: ItemContent, _ id: ItemID, deletedAt deletion: Revision?
    ) -> SealedBox.Edit {
        edit.creating(afterHash: previous(content, id), deletedAt: deletion)
    }

    /// Returns the first edit of an item that begins as a copy of a version.
    func copy(of content: ItemContent, _ id: ItemID) -> SealedBox.Edit {
        SealedBox.Edit(number: 1, previous: previous(content, id))
    }

    /// Returns true when an edit was made from a version.
    func follows(_ edit: SealedBox.Edit, _ content: ItemContent, _ id: ItemID) -> Bool {
        edit.previous == hash(of: content, id)
    }

    /// Returns the id of a copy of a version, the same on every device.
    func copyID(of content: ItemContent, _ id: ItemID) -> ItemID {
        let name = Array("saltern-1 copy".utf8) + id.bytes + copyName(of: content, id)
        return ItemID(bytes: SHA256.hash(name).bytes.prefix(16)) ?? .random()
    }

    /// The bytes that name a version in the id of its copy.
    private func copyName(of content: ItemContent, _ id: ItemID) -> [UInt8] {
        // Copies of an account's versions have names of their sealed bytes since the first version of the kit.
        head == nil ? content.body.bytes : previous(content, id)
    }

    private func previous(_ content: ItemContent, _ id: ItemID) -> [UInt8] {
        hash(of: content, id) ?? SealedBox.Edit.first.previous
    }
}
