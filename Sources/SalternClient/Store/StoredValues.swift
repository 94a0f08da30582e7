/// An item in its last received state of the server.
struct StoredItem: Hashable, Sendable {
    var id: ItemID
    var revision: Revision
    var content: ItemContent
    /// The number of its edit; 0 for an item that was never opened here.
    var edit: UInt64

    /// True for an item that was never opened here.
    var isSealed: Bool { edit == 0 }
}

/// A record of an item whose tombstone the server has.
struct Tombstone: Hashable, Sendable {
    var deletion: Revision
    /// The number of the last edit on this device; nil when it had none.
    var edit: UInt64?
}

/// An edit of the user that the server has not confirmed.
struct LocalChange: Hashable, Sendable {
    /// The content of the last request that was not confirmed.
    enum Sent: Hashable, Sendable {
        case content(digest: [UInt8])
        case deletion
    }

    var id: ItemID
    /// The position in the order of sending.
    var sequence: Int64
    /// The revision that was changed; nil for an item that the server does not have.
    var base: Revision?
    /// The new content; nil for a deletion.
    var content: ItemContent?
    var edit: UInt64
    /// The content before the change, for a merge.
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

/// An event for the user, such as a conflict.
public struct Notice: Hashable, Sendable {
    /// The kinds of events. The raw values are stable, for scripts.
    public enum Kind: String, Sendable {
        /// Changed on this device and on another one: `other` is the copy with the version of this device.
        case conflict
        /// Changed here, deleted by another device: the change was kept.
        case keptAfterDeletion
        /// Deleted here, changed by another device: the change was kept.
        case deletionUndone
        /// The server returned a version that cannot be opened under its name. A known version is kept; `other` is the
        /// copy with the change of this device.
        case unreadable
        /// A version that only this device has cannot be opened: its key is missing, or the store is damaged. It stays
        /// here and is not sent. ``Vault/delete(_:)`` puts it in the trash, and the server's version is restored.
        case unreadableChange
        /// The server returned an older version than the known one, which stays and is sent again. If the older version
        /// has other content, `other` is the copy with it. For an item that was deleted here, the older version was
        /// accepted, and the known one is in the trash of this device.
        case rolledBack
        /// A later version of an item has no title although the previous one had one. Another device has removed it, or
        /// the server has omitted it.
        case titleMissing
        /// The server's database was restored from a backup, or lost confirmed changes. The items were compared, and
        /// none was deleted.
        case timeWentBack
        /// A complete listing did not contain an item of this device: it was kept, and is sent again.
        case keptUnlisted
        /// The plan is full: the change stays on this device until there is room.
        case quotaExceeded
        /// The server rejected a change permanently: it stays on this device.
        case refused
        /// Many deletions arrived at once: no item is removed here until the user has approved.
        case massDeletion
        /// The server returned an older keyring than the known one, and it was rejected. While this notice exists,
        /// other devices cannot read new content of this one. When the server's database was restored, put this keyring
        /// back (``Vault/logInAgain(password:code:userid:restoringKeyring:passkey:)``).
        case keyringRolledBack
        /// No printed recovery code is valid. A keyring was put back after a restore of the server, or a new code was
        /// created and never shown because the reply was lost. Create another.
        case recoveryRemoved
        /// The data key was rotated after the recovery code was printed. A person with the earlier keyring can,
        /// together with the server, give that code a keyring that it accepts. The notice ends with another code
        /// (``Vault/makeRecoveryCode(password:)``) or without one.
        case recoveryCodeOutdated
        /// A change of password, iterations, userid or data key has ended the unlocking by ``Notice/passkeys``. Another
        /// client had added them without their keys in the keyring. They stay a second factor.
        case passkeysStoppedUnlocking

        /// True for a condition that lasts until it is corrected. The notice then ends automatically, and
        /// ``Vault/forget(_:)`` does not remove it.
        public var isLasting: Bool { self == .keyringRolledBack || self == .recoveryCodeOutdated }
    }

    /// The number of the notice, for ``Vault/forget(_:)``.
    public let number: Int64
    /// The kind of event.
    public let kind: Kind
    /// The item that the notice is about; nil when it is about the account.
    public let item: ItemID?
    /// The copy, for ``Kind/conflict``, ``Kind/rolledBack`` and ``Kind/unreadable``.
    public let other: ItemID?
    /// The credential ids, for ``Kind/passkeysStoppedUnlocking``.
    public var passkeys: [Base64URLBytes] = []
}
