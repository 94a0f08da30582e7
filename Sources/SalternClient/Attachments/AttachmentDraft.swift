/// An attachment that is being sent and that no item names yet.
struct AttachmentDraft: Sendable {
    let id: ItemID
    /// False when the id was generated for one call, so that no later call can continue it.
    let isResumable: Bool
    /// The parts of it that are already in items; nil when they have not been determined.
    let before: Before?
    /// True when the device keeps the content, until it is sent or as a copy. False when one of its files has the
    /// content.
    var keepsContent = true
    /// True when copies are kept. Content above the limit of all copies has none.
    var keepsCopies = true

    /// The version that an attachment replaces.
    struct Before: Sendable {
        /// Its chunks that present items name. No device takes these back or sweeps them.
        var named: Set<ItemID> = []
        /// The sealed bytes of the manifest that is replaced on the server; nil for none.
        var manifestByteCount: Int64?
    }

    /// - Parameter id: Nil to generate one.
    init(_ id: ItemID?) {
        self.id = id ?? .random()
        isResumable = id != nil
        before = id == nil ? Before() : nil
    }

    init(_ id: ItemID, before: Before) {
        self.id = id
        isResumable = true
        self.before = before
    }
}

/// The state of an attachment while calls send it.
struct Attaching: Sendable {
    var callCount = 0
    /// The parts of it that are already in items, after they have been determined.
    var before: AttachmentDraft.Before?
}

/// A chunk that this device sent under a draft.
struct DraftChunk: Hashable, Sendable {
    let id: ItemID
    /// The revision at which this device created it; nil while the outcome is uncertain.
    let revision: Revision?
    /// The concatenated digests of all sent contents (``ItemContent/digest``). Each sealing has other bytes.
    let sent: [UInt8]

    /// Returns true when this device sent this content.
    func hasSent(_ content: ItemContent) -> Bool {
        let digest = content.digest
        return stride(from: 0, to: sent.count, by: digest.count).contains { sent[$0...].starts(with: digest) }
    }
}
