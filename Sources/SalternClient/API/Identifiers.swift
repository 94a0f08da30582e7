public import Foundation

/// The identifier of an entity: a UUID whose text is in lower case.
///
/// ```swift
/// let text = "\(ItemID.random())"
/// if let id = ItemID(text), let note = try await notes[id] { show(note.text) }
/// ```
public struct Identifier<Entity>: Hashable, Sendable, Comparable, Codable, CustomStringConvertible {
    /// The identifier as a UUID.
    public let uuid: UUID

    /// Creates an identifier from a UUID, such as one that an app has stored.
    public init(_ uuid: UUID) { self.uuid = uuid }

    /// Returns a random identifier (RFC 9562 version 4).
    public static func random() -> Self { Self(UUID()) }

    /// Parses the text of a UUID, in either case; nil for another text.
    public init?(_ text: some StringProtocol) {
        guard let uuid = UUID(uuidString: String(text)) else { return nil }
        self.uuid = uuid
    }

    /// The sixteen bytes.
    public var bytes: [UInt8] { withUnsafeBytes(of: uuid.uuid) { [UInt8]($0) } }

    /// Creates an identifier from its sixteen bytes; nil for another number of bytes.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        var value: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &value) { $0.copyBytes(from: bytes) }
        uuid = UUID(uuid: value)
    }

    public var description: String { uuid.uuidString.lowercased() }

    public static func < (left: Self, right: Self) -> Bool {
        withUnsafeBytes(of: left.uuid.uuid) { left in
            withUnsafeBytes(of: right.uuid.uuid) { right in left.lexicographicallyPrecedes(right) }
        }
    }

    public init(from decoder: any Decoder) throws {
        uuid = try decoder.singleValueContainer().decode(UUID.self)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

/// The entity of an ``AccountID``.
public enum AccountEntity: Sendable {}
/// The entity of a ``SessionID``.
public enum SessionEntity: Sendable {}
/// The entity of an ``ItemID``.
public enum ItemEntity: Sendable {}
/// The entity of a ``RotationID``.
public enum RotationEntity: Sendable {}
/// The entity of a ``SharedVaultID``.
public enum SharedVaultEntity: Sendable {}
/// The entity of a ``MemberID``.
public enum MemberEntity: Sendable {}
/// The entity of an ``InvitationID``.
public enum InvitationEntity: Sendable {}

/// The id of an account. The server assigns it, and it never changes.
public typealias AccountID = Identifier<AccountEntity>
/// The id of a session of an account.
public typealias SessionID = Identifier<SessionEntity>
/// The id of an item. The device that creates the item generates it at random.
public typealias ItemID = Identifier<ItemEntity>
/// The id of a rotation of an account's keys.
public typealias RotationID = Identifier<RotationEntity>
/// The id of a shared vault: the beginning of the hash of its founding entry.
public typealias SharedVaultID = Identifier<SharedVaultEntity>
/// The id of an account inside of one shared vault. It links no two vaults.
public typealias MemberID = Identifier<MemberEntity>
/// The id of an invitation to a shared vault. It is not secret.
public typealias InvitationID = Identifier<InvitationEntity>

/// A value of the account's counter: the number of an item's last change. Revisions grow.
public struct Revision: Hashable, Sendable, Comparable, Codable, CustomStringConvertible {
    /// The value of the account's counter, from 1. After a restore of the server it can be above 10^15.
    public let number: Int64

    /// Creates a revision from its number; 0 means that there is no item.
    public init(_ number: Int64) { self.number = number }

    public init(from decoder: any Decoder) throws {
        number = try decoder.singleValueContainer().decode(Int64.self)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(number)
    }

    public static func < (left: Revision, right: Revision) -> Bool { left.number < right.number }

    /// The entity tag (RFC 9110 section 8.8.3) of an item or keyring at this revision.
    public var entityTag: String { "\"\(number)\"" }

    public var description: String { String(number) }
}
