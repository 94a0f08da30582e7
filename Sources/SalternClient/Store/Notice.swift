internal import Foundation

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

extension Store {
    // MARK: Notices

    func note(_ kind: Notice.Kind, _ item: ItemID? = nil, other: ItemID? = nil) throws {
        // Each kind is stored once for an item.
        let known = try database.rows(
            "SELECT 1 FROM notices WHERE kind = ? AND item IS ? AND other IS ?", .text(kind.rawValue),
            .optional(item?.bytes), .optional(other?.bytes)
        ) { _ in true }
        guard known.isEmpty else { return }
        try database.execute(
            "INSERT INTO notices (kind, item, other, noticed_at) VALUES (?, ?, ?, ?)", .text(kind.rawValue),
            .optional(item?.bytes), .optional(other?.bytes), .integer(Int64(Date().timeIntervalSince1970)))
    }

    /// Notes passkeys that a change of the keys is about to stop from unlocking. The notice gets another number, so
    /// that further passkeys are reported, too. The state before the change is kept until ``keepStopped()`` or
    /// ``takeBackStopped()``.
    func noteStopped(_ passkeys: [Base64URLBytes]) throws {
        try transaction {
            let known = try stoppedNotice()
            if try fact(.stoppedBefore) == nil {
                try set(.stoppedBefore, [UInt8](JSONEncoder().encode(known.map { [$0] } ?? [])))
            }
            let all = (known?.passkeys ?? []).filter { !passkeys.contains($0) } + passkeys
            // An account has at most so many. A hostile server can name others each time.
            try set(.stoppedPasskeys, [UInt8](JSONEncoder().encode(all.suffix(PasskeyKeys.limit))))
            // The earlier one is removed afterwards. Otherwise SQLite uses its number again.
            try insertStopped(nil, at: Int64(Date().timeIntervalSince1970))
            if let known { try forgetNotice(known.number) }
        }
    }

    /// Ends a change that was applied, or that has an uncertain outcome.
    func keepStopped() throws { try set(.stoppedBefore, nil) }

    /// Ends a change that was not applied: the notice is the one before it.
    func takeBackStopped() throws {
        try transaction {
            guard let bytes = try fact(.stoppedBefore) else { return }
            try set(.stoppedBefore, nil)
            // The user may have removed it meanwhile.
            guard try stoppedNotice() != nil else { return }
            let before = try JSONDecoder().decode([StoppedNotice].self, from: Data(bytes)).first
            try forgetNotices(.passkeysStoppedUnlocking)
            guard let before else { return }
            try insertStopped(before.number, at: before.noticedAt)
            try set(.stoppedPasskeys, [UInt8](JSONEncoder().encode(before.passkeys)))
        }
    }

    /// The notice of ``Notice/Kind/passkeysStoppedUnlocking``.
    private struct StoppedNotice: Codable {
        let number: Int64
        let noticedAt: Int64
        let passkeys: [Base64URLBytes]
    }

    private func stoppedNotice() throws -> StoppedNotice? {
        try database.rows(
            "SELECT number, noticed_at FROM notices WHERE kind = ?",
            .text(Notice.Kind.passkeysStoppedUnlocking.rawValue)
        ) { row in
            guard let number = row.integer(0), let moment = row.integer(1) else { throw StoreError.damaged }
            return StoppedNotice(number: number, noticedAt: moment, passkeys: try stoppedPasskeys())
        }.last
    }

    /// - Parameter number: Nil for the next one.
    private func insertStopped(_ number: Int64?, at moment: Int64) throws {
        try database.execute(
            "INSERT INTO notices (number, kind, noticed_at) VALUES (?, ?, ?)", .optional(number),
            .text(Notice.Kind.passkeysStoppedUnlocking.rawValue), .integer(moment))
    }

    private func stoppedPasskeys() throws -> [Base64URLBytes] {
        guard let ids = try fact(.stoppedPasskeys) else { return [] }
        return try JSONDecoder().decode([Base64URLBytes].self, from: Data(ids))
    }

    /// The number of the latest notice, which grows with each; nil when there is none.
    func lastNotice() throws -> Int64? {
        try database.rows("SELECT max(number) FROM notices") { $0.integer(0) }.first ?? nil
    }

    /// Returns the notices. Those of an unknown kind belong to a later kit, and stay in the store.
    func notices() throws -> [Notice] {
        try database.rows("SELECT number, kind, item, other FROM notices ORDER BY number") { row -> Notice? in
            guard let number = row.integer(0), let name = row.text(1) else { throw StoreError.damaged }
            guard let kind = Notice.Kind(rawValue: name) else { return nil }
            return Notice(
                number: number, kind: kind, item: row.blob(2).flatMap { ItemID(bytes: $0) },
                other: row.blob(3).flatMap { ItemID(bytes: $0) },
                passkeys: kind == .passkeysStoppedUnlocking ? try stoppedPasskeys() : [])
        }.compactMap(\.self)
    }

    func forgetNotice(_ number: Int64) throws {
        try database.execute("DELETE FROM notices WHERE number = ?", .integer(number))
    }

    /// Removes the notices about rejected changes of an item.
    func forgetRefusals(of item: ItemID) throws {
        let kinds = [Notice.Kind.quotaExceeded, .refused, .unreadableChange].map(\.rawValue)
        try database.execute(
            "DELETE FROM notices WHERE item = ? AND kind IN (?, ?, ?)", .blob(item.bytes), .text(kinds[0]),
            .text(kinds[1]), .text(kinds[2]))
    }

    /// Removes the notices of a kind that has ended.
    func forgetNotices(_ kind: Notice.Kind) throws {
        try database.execute("DELETE FROM notices WHERE kind = ?", .text(kind.rawValue))
    }
}
