/// An item as the server was last seen to have it.
struct StoredItem: Hashable, Sendable {
    var id: ItemID
    var revision: Revision
    var content: ItemContent
    /// The number of the edit that it is; 0 for what has never been opened here.
    var edit: UInt64

    /// Whether it has never been opened here.
    var isSealed: Bool { edit == 0 }
}

/// What is known of an item that the server has a tombstone of.
struct Tombstone: Hashable, Sendable {
    var deletion: Revision
    /// The number of the last edit that was known here; nil when the item was not.
    var edit: UInt64?
}

/// What a person has changed here and the server has not confirmed.
struct LocalChange: Hashable, Sendable {
    /// What was sent last and not confirmed.
    enum Sent: Hashable, Sendable {
        case content(digest: [UInt8])
        case deletion
    }

    var id: ItemID
    /// Changes are sent in this order.
    var sequence: Int64
    /// The revision that was changed; nil for an item that the server does not have.
    var base: Revision?
    /// Nil for a deletion.
    var content: ItemContent?
    var edit: UInt64
    /// What was changed, for a merge.
    var baseContent: (title: [UInt8]?, body: [UInt8])?
    var sent: Sent?
    /// The sequence of the first of the edits that were stored together; nil for a single one.
    var together: Int64?

    static func == (left: LocalChange, right: LocalChange) -> Bool {
        (left.id, left.sequence, left.base, left.content, left.edit) == (
            right.id, right.sequence, right.base, right.content, right.edit
        ) && left.sent == right.sent
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(id)
        hasher.combine(sequence)
    }
}

/// An event that the user has to see, such as a conflict.
public struct Notice: Hashable, Sendable {
    /// The kinds of events. The raw values are stable, for scripts.
    public enum Kind: String, Sendable {
        /// Changed here and elsewhere: `other` is the copy that holds the version of this device.
        case conflict
        /// Changed here, deleted elsewhere: the change was kept.
        case keptAfterDeletion
        /// Deleted here, changed elsewhere: the change was kept.
        case deletionUndone
        /// The server gave something that does not open under its own name. A version that is known stays in its place;
        /// `other` is the copy that holds what was changed here.
        case unreadable
        /// A version that only this device has does not open: its key is missing, or the store is damaged. It stays
        /// here and is not sent. ``Vault/delete(_:)`` puts it in the trash, and the server's version is there again.
        case unreadableChange
        /// The server gave an older version than is known. The known one stays and is sent again; `other` is the copy
        /// that holds the older one, when that is other content. Of an item that was deleted here the older one was taken,
        /// and the known one is in the trash of this device.
        case rolledBack
        /// A later version of an item has no title, and the one before had one: another device has removed it, or the server
        /// has left it away.
        case titleMissing
        /// The server's database was restored from a backup, or lost what it had confirmed: compared, nothing deleted.
        case timeWentBack
        /// A listing of everything did not have an item that is known here: it was kept, and is sent again.
        case keptUnlisted
        /// The plan allows no more: the change stays on this device until there is room.
        case quotaExceeded
        /// The server refused a change for good: it stays on this device.
        case refused
        /// Many deletions at once: nothing was removed here until somebody has agreed.
        case massDeletion
        /// The server gave an older keyring than is known, and it was not taken. As long as this notice is there, other devices
        /// cannot read what this one writes: its keyring has to be put back
        /// (``Vault/logInAgain(password:code:restoringKeyring:)``), when the server's database was restored.
        case keyringRolledBack
        /// No printed recovery code opens the account any more: a keyring was put back after a restore of the server, or a
        /// new code was made and never shown, because the reply was lost. Make another.
        case recoveryRemoved
        /// The data key was rotated, and the printed recovery code is the one from before. A person who has seen the earlier
        /// keyring can, together with the server, give that code a keyring that it believes. The notice goes when there is
        /// another code (``Vault/makeRecoveryCode(password:)``) or none.
        case recoveryCodeOutdated

        /// True for a condition that lasts until it is corrected. The notice goes by itself then, and
        /// ``Vault/forget(_:)`` keeps it.
        public var isLasting: Bool { self == .keyringRolledBack || self == .recoveryCodeOutdated }
    }

    /// For ``Vault/forget(_:)``.
    public let number: Int64
    /// The kind of event.
    public let kind: Kind
    /// The item that the notice is about; nil when it is about the account.
    public let item: ItemID?
    /// For ``Kind/conflict``, ``Kind/rolledBack`` and ``Kind/unreadable``: the copy.
    public let other: ItemID?
}
