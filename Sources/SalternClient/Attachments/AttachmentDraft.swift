/// An attachment while it is sent, and no item names it.
struct AttachmentDraft: Sendable {
    /// Who may have to do with the chunks that are sent under its id.
    enum Use: Sendable {
        /// The id was drawn for this one call: nobody can go on with it, nor name its chunks.
        case single
        /// The caller has the id, and can go on.
        case resumable
        /// Other devices can come to the same id by themselves, and name the same chunks at any time.
        case shared
    }

    let id: ItemID
    let use: Use

    init(_ id: ItemID?) {
        self.id = id ?? .random()
        use = id == nil ? .single : .resumable
    }

    init(shared id: ItemID) {
        self.id = id
        use = .shared
    }
}
