public import Foundation

/// The number and the hash of the latest entry of a log.
public struct VaultHead: Codable, Hashable, Sendable {
    /// The number of the entry, from 1.
    public let number: UInt64
    /// The hash of the entry, 32 bytes.
    public let hash: Base64Bytes

    /// Creates a head.
    public init(number: UInt64, hash: [UInt8]) {
        self.number = number
        self.hash = Base64Bytes(hash)
    }
}

/// A shared vault, as the server lists it to one of its members.
public struct VaultDescription: Decodable, Sendable {
    /// The used part of the limits.
    public struct Usage: Decodable, Sendable {
        /// The number of items.
        public let items: Int64
        /// The sealed bytes of the items.
        public let bytes: Int64
    }

    /// The limits of the owner's plan.
    public struct Limits: Decodable, Sendable {
        /// The maximum number of items.
        public let items: Int64
        /// The maximum of one item, in sealed bytes.
        public let itemBytes: Int64
        /// The maximum of all items, in sealed bytes.
        public let bytes: Int64
        /// The maximum number of members.
        public let members: Int64
    }

    /// The id of the vault.
    public let id: SharedVaultID
    /// The account's member id.
    public let memberId: MemberID
    /// The role: `reader`, `writer` or `manager`.
    public let role: String
    /// True when the vault counts against this account's plan.
    public let owner: Bool
    /// The vault's revision at its last change.
    public let revision: Revision
    /// The head of the log.
    public let head: VaultHead
    /// True when a former member has the present key.
    public let rotationDue: Bool
    /// The end of the period in which missing entries are put back; nil unless the database was restored.
    public let recoveringUntil: Date?
    /// True when the server has no box with the present key for this account.
    public let boxMissing: Bool?
    /// The used part of the limits.
    public let usage: Usage
    /// The limits of the owner's plan.
    public let limits: Limits
    /// The members. Nil in a list.
    public let members: [VaultSeat]?
}

/// The unsigned statements of the server about a member of a shared vault.
public struct VaultSeat: Codable, Hashable, Sendable {
    /// A head with the signature of a member that has seen it.
    public struct Seen: Codable, Hashable, Sendable {
        /// The number of the entry.
        public let number: UInt64
        /// The hash of the entry.
        public let hash: Base64Bytes
        /// The signature by the member.
        public let signature: Base64Bytes
    }

    /// The member.
    public let id: MemberID
    /// True when the account is locked or deleted.
    public let departed: Bool
    /// True when the server has no box with the present key for the member.
    public let boxMissing: Bool?
    /// The latest head that the member has signed.
    public let seen: Seen?
}

/// The key of a generation, sealed for one member or under the next key.
public struct VaultKeyBox: Codable, Hashable, Sendable {
    /// The member; nil in a reply with the caller's own boxes.
    public var member: MemberID?
    /// The number of the generation; nil in a request with an entry.
    public var generation: UInt64?
    /// The sealed key.
    public var box: Base64Bytes
}

/// The key before a generation, sealed under the key of the generation.
public struct VaultPreviousKey: Codable, Hashable, Sendable {
    /// The number of the generation.
    public let generation: UInt64
    /// The sealed key.
    public let key: Base64Bytes

    /// Creates a sealed key.
    public init(generation: UInt64, key: [UInt8]) {
        self.generation = generation
        self.key = Base64Bytes(key)
    }
}

/// A page of the log of a shared vault, with the caller's keys.
public struct VaultLogPage: Decodable, Sendable {
    /// The entries, in order.
    public let entries: [Base64Bytes]
    /// True when more entries follow.
    public let more: Bool
    /// The caller's boxes.
    public let boxes: [VaultKeyBox]
    /// The sealed previous keys, the latest first.
    public let previousKeys: [VaultPreviousKey]
    /// The numbers of the `seal` entries with a stored list.
    public let seals: [UInt64]?
}

/// An entry, with everything that is stored with it.
public struct VaultEntryRequest: Encodable, Sendable {
    /// The bytes of the entry.
    public var entry: Base64Bytes
    /// For a new generation: a box for each member.
    public var boxes: [VaultKeyBox]?
    /// For a new generation: the key before, sealed under the new one.
    public var previousKey: Base64Bytes?
    /// For a seal: the list.
    public var list: Base64Bytes?
    /// For a removal: the highest revision that this device has.
    public var ifRevision: Revision?
    /// For new keys of a member: the present password key.
    public var currentPasswordKey: SecretBytes?

    /// Creates a request with an entry alone.
    public init(_ entry: [UInt8]) { self.entry = Base64Bytes(entry) }
}

/// The place of an entry in the log.
public struct VaultEntryReply: Decodable, Sendable {
    /// The number of the entry.
    public let number: UInt64
    /// The hash of the entry.
    public let hash: Base64Bytes
    /// The vault's new revision; nil for a repeated request.
    public let revision: Revision?
}

/// An invitation, as its link opens it.
public struct VaultInvitationReply: Decodable, Sendable {
    /// The vault.
    public let vault: SharedVaultID
    /// The sealed names.
    public let preview: Base64Bytes
    /// The whole log.
    public let entries: [Base64Bytes]
}

/// The outcome of a join.
public struct VaultJoinReply: Decodable, Sendable {
    /// The vault.
    public let vault: SharedVaultID
    /// The number of the entry that joined.
    public let number: UInt64
    /// The hash of the entry.
    public let hash: Base64Bytes
    /// The present key, sealed for the holders of the link; nil for a repeated request after the end of the invitation.
    public let keyBox: Base64Bytes?
}

/// An open invitation, as the server lists it to managers.
public struct VaultInvitationHeader: Decodable, Sendable {
    /// The id of the invitation.
    public let id: InvitationID
    /// The number of times that its link was opened.
    public let openings: Int64
    /// The time at which it ends.
    public let expiresAt: Date
}
