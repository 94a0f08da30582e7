public import Foundation

/// The identifier of an entity: a UUID whose text is in lower case.
public struct Identifier<Entity>: Hashable, Sendable, Comparable, Codable, CustomStringConvertible {
    public let uuid: UUID

    public init(_ uuid: UUID) { self.uuid = uuid }

    /// A random one (RFC 9562 version 4).
    public static func random() -> Self { Self(UUID()) }

    /// Reads the text of a UUID, in either case.
    public init?(_ text: some StringProtocol) {
        guard let uuid = UUID(uuidString: String(text)) else { return nil }
        self.uuid = uuid
    }

    /// The sixteen bytes.
    public var bytes: [UInt8] { withUnsafeBytes(of: uuid.uuid) { [UInt8]($0) } }

    /// - Returns: nil unless there are sixteen bytes.
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

/// What identifiers are of.
public enum AccountEntity: Sendable {}
public enum SessionEntity: Sendable {}
public enum ItemEntity: Sendable {}
public enum RotationEntity: Sendable {}

public typealias AccountID = Identifier<AccountEntity>
public typealias SessionID = Identifier<SessionEntity>
public typealias ItemID = Identifier<ItemEntity>
public typealias RotationID = Identifier<RotationEntity>

/// A number of an account's own counter: what an item had when it was last changed. Revisions grow.
public struct Revision: Hashable, Sendable, Comparable, Codable, CustomStringConvertible {
    public let number: Int64

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
