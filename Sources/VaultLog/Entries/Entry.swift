internal import Cryptography

/// An entry of the membership log of a vault:
///
///     01 ‖ kind (1) ‖ vault (16) ‖ number (8) ‖ hash of the previous entry (32) ‖ time (8) ‖ author (16)
///     ‖ content ‖ signature (64)
///
/// An entry of this type is well-formed. Only ``MembershipLog`` decides about its validity.
public struct Entry: Hashable, Sendable {
    /// The reason for which bytes are no entry.
    public enum Malformation: Error, Hashable, Sendable {
        /// A later version of this protocol made the entry. It cannot be skipped: later entries depend on it.
        case unknownVersion
        /// A later version of this protocol has this kind. The entry cannot be skipped.
        case unknownKind
        /// The bytes violate the layout.
        case malformed
    }

    /// The parts before the content.
    struct Header: Hashable {
        var vault: VaultID
        var number: EntryNumber
        var previous: EntryHash
        var time: EntryTime
        var author: MemberID

        static let byteCount = 82

        func bytes(_ kind: EntryKind) -> [UInt8] {
            [Entry.version, kind.rawValue] + vault.bytes + number.bytes + previous.bytes + time.bytes + author.bytes
        }
    }

    static let version: UInt8 = 1
    /// The maximum number of bytes.
    public static let byteLimit =
        Header.byteCount + Generation.byteCount + 2 + LogBounds.members * MemberID.byteCount + VaultSignature.byteCount

    /// The whole entry.
    public let bytes: [UInt8]
    /// The hash, which does not cover the signature.
    public let hash: EntryHash
    /// The content.
    public let payload: EntryPayload
    /// The signature by the author.
    public let signature: VaultSignature
    let header: Header

    /// The vault.
    public var vault: VaultID { header.vault }
    /// The number in the log.
    public var number: EntryNumber { header.number }
    /// The hash of the entry before; zeros in a founding entry.
    public var previous: EntryHash { header.previous }
    /// The time by the author's clock.
    public var time: EntryTime { header.time }
    /// The author.
    public var author: MemberID { header.author }
    /// Number and hash.
    public var head: Head { Head(number: number, hash: hash) }

    /// Reads an entry.
    public init(_ bytes: [UInt8]) throws(Malformation) {
        guard let version = bytes.first else { throw .malformed }
        guard version == Self.version else { throw .unknownVersion }
        var reader = ByteReader(bytes[...])
        guard reader.take(1) != nil, let kindByte = reader.number(UInt8.self) else { throw .malformed }
        guard let kind = EntryKind(rawValue: kindByte) else { throw .unknownKind }
        guard bytes.count <= Self.byteLimit, let vault = reader.id(VaultID.self), let head = reader.head(),
            let time = reader.number(UInt64.self).flatMap({ EntryTime(seconds: $0) }),
            let author = reader.id(MemberID.self), let payload = EntryPayload(kind, &reader),
            let signature = reader.signature(), reader.isAtEnd
        else { throw .malformed }
        self.init(
            Header(vault: vault, number: head.number, previous: head.hash, time: time, author: author), payload,
            signature, bytes: bytes)
        guard (kind == .found) == (number == .first) else { throw .malformed }
    }

    /// - Parameter bytes: The encoding of the other parameters.
    init(_ header: Header, _ payload: EntryPayload, _ signature: VaultSignature, bytes: [UInt8]) {
        self.header = header
        self.payload = payload
        self.signature = signature
        self.bytes = bytes
        hash = EntryHash(of: bytes.dropLast(VaultSignature.byteCount))
    }

    /// The bytes that the author signs, after the label.
    var text: [UInt8] { [UInt8](bytes.dropLast(VaultSignature.byteCount)) }

    /// The bytes that the admission key of an invitation, or the new key of a member, signs after the label.
    var innerText: [UInt8] { [UInt8](bytes.dropLast(2 * VaultSignature.byteCount)) }

    /// Returns true when a key has signed the entry as its author.
    func isSigned(by key: ES256.VerifyingKey) -> Bool { signature.isValid(VaultLabel.entry.text(text), by: key) }

    /// The id of the vault that this entry founds: the first 16 bytes of its hash with zeros in the place of the id.
    var foundedVault: VaultID? {
        var text = text
        text.replaceSubrange(2..<2 + VaultID.byteCount, with: repeatElement(0, count: VaultID.byteCount))
        return VaultID(EntryHash(of: text).bytes.prefix(VaultID.byteCount))
    }
}

/// The kinds of entries.
public enum EntryKind: UInt8, Hashable, CaseIterable, Sendable {
    /// Founds the vault.
    case found = 1
    /// Opens an invitation.
    case invite = 2
    /// Uses an invitation.
    case join = 3
    /// Changes the role of a member.
    case role = 4
    /// Removes members, with a new generation.
    case remove = 5
    /// Ends the author's own membership.
    case leave = 6
    /// Begins a new generation.
    case rotate = 7
    /// Closes an invitation.
    case revoke = 8
    /// Lists the edits that count of writers that an earlier entry cut off.
    case seal = 9
    /// Offers the vault to another manager.
    case offer = 10
    /// Takes the offered vault over.
    case accept = 11
    /// Replaces the author's own keys.
    case rekey = 12
}
