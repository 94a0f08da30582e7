/// An attachment while it is sent, and no item names it.
struct AttachmentDraft: Sendable {
    let id: ItemID
    /// Whether somebody can go on with it: not when the id was drawn for this one call.
    let isResumable: Bool
    /// What the server has of it already, in an item; nil for who does not know.
    let before: Before?
    /// True when the device keeps the content, to wait or as a copy. It does not when one of its files has the content.
    var keepsContent = true
    /// True when copies are kept. Content that is longer than the limit of all copies has none.
    var keepsCopies = true

    /// What an attachment takes the place of.
    struct Before: Sendable {
        /// Chunks of it that present items name: no device takes those back or sweeps them.
        var named: Set<ItemID> = []
        /// The sealed bytes of the manifest that is replaced on the server; nil for none.
        var manifestByteCount: Int64?
    }

    /// - Parameter id: Nil for one that is drawn now.
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

/// An attachment while calls send it.
struct Attaching: Sendable {
    /// How many.
    var callCount = 0
    /// What the items here have of it, once somebody has had to look.
    var before: AttachmentDraft.Before?
}

/// A chunk that was sent from here under a draft.
struct DraftChunk: Hashable, Sendable {
    let id: ItemID
    /// At which revision it was created from here; nil as long as nobody knows whether it was.
    let revision: Revision?
    /// The digests of what was sent (``ItemContent/digest``), one after the other: each time it is sealed anew.
    let sent: [UInt8]

    /// Whether this content was sent from here.
    func hasSent(_ content: ItemContent) -> Bool {
        let digest = content.digest
        return stride(from: 0, to: sent.count, by: digest.count).contains { sent[$0...].starts(with: digest) }
    }
}
