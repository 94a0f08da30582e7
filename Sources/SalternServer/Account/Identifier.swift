internal import Cryptography
public import HTTPCore
public import Postgres

/// A UUID whose type names the identified entity, so that a session's identifier cannot be used as an item's.
public struct Identifier<Entity>: Hashable, Sendable {
    public let uuid: UUID

    public init(_ uuid: UUID) {
        self.uuid = uuid
    }

    /// Draws a random identifier.
    static func random() -> Identifier { Identifier(.random()) }

    /// Reads 36 characters, hexadecimal in either case: Apple's `UUID.uuidString` is in upper case.
    init?(text: UnsafeBufferPointer<UInt8>) {
        let uuid: UUID? = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 36) { lowerCased in
            guard text.count == 36 else { return nil }
            for index in 0..<36 {
                let byte = text[index]
                lowerCased.initializeElement(at: index, to: byte &- 0x41 < 6 ? byte | 0x20 : byte)
            }
            return UUID(canonicalText: UnsafeBufferPointer(lowerCased))
        }
        guard let uuid else { return nil }
        self.uuid = uuid
    }
}

extension UUID {
    /// Draws a random UUID (RFC 9562, version 4).
    static func random() -> UUID {
        withUnsafeTemporaryAllocation(byteCount: 16, alignment: 8) { buffer in
            SecureRandom.fill(buffer)
            let high = buffer.loadUnaligned(as: UInt64.self)
            let low = buffer.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
            return UUID(
                high: high & 0xFFFF_FFFF_FFFF_0FFF | 0x0000_0000_0000_4000,
                low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
        }
    }
}

extension Identifier: CustomStringConvertible {
    /// The canonical form, in lower case.
    public var description: String { uuid.description }
}

extension Identifier: PostgresValue, PostgresArrayElement {
    public static var postgresArrayType: PostgresType { .uuidArray }

    public static var postgresType: PostgresType { .uuid }

    public func encode(to writer: inout ByteWriter) { uuid.encode(to: &writer) }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> Identifier? {
        UUID.decode(bytes).map(Identifier.init)
    }
}

extension Identifier: PathParameterConvertible {
    public init?(pathParameter text: String) {
        var text = text
        guard let identifier = text.withUTF8({ Identifier(text: $0) }) else { return nil }
        self = identifier
    }
}

/// An account. It serves as the type parameter of ``AccountID``.
public enum Account {}

/// Identifies an account.
public typealias AccountID = Identifier<Account>

extension AccountID {
    /// The owner of the memory of this account's requests.
    var memoryOwner: MemoryBudget.Owner { .account(uuid.high, uuid.low) }

    /// Reads the account from an owner of memory. Nil if the owner is an address.
    init?(memoryOwner: MemoryBudget.Owner) {
        guard case .account(let high, let low) = memoryOwner else { return nil }
        self.init(UUID(high: high, low: low))
    }
}
