internal import Cryptography

/// 16 bytes that identify one subject inside of a vault, or the vault itself.
///
/// The text form is that of a UUID, because ids are also ids of items and parts of paths.
public struct Identifier<Subject>: Hashable, Sendable {
    /// The bytes.
    public let bytes: [UInt8]

    /// The size of an id, in bytes.
    public static var byteCount: Int { 16 }

    /// Creates an id from 16 bytes.
    /// - Returns: nil for another number of bytes.
    public init?(_ bytes: some Sequence<UInt8>) {
        self.bytes = [UInt8](bytes)
        guard self.bytes.count == Self.byteCount else { return nil }
    }

    /// Reads the text form: 32 lower-case hexadecimal digits in groups of 8, 4, 4, 4 and 12.
    public init?(text: String) {
        let digits = text.split(separator: "-", omittingEmptySubsequences: false).joined()
        guard let bytes = Hex.decode(digits), let id = Self(bytes), id.text == text else { return nil }
        self = id
    }

    /// Draws an id.
    public static func random() -> Self {
        guard let id = Self(SecureRandom.bytes(byteCount)) else { preconditionFailure("16 bytes are an id") }
        return id
    }

    /// The text form.
    public var text: String {
        let digits = Hex.encode(bytes)
        var groups: [Substring] = []
        var start = digits.startIndex
        for length in [8, 4, 4, 4, 12] {
            let end = digits.index(start, offsetBy: length)
            groups.append(digits[start..<end])
            start = end
        }
        return groups.joined(separator: "-")
    }
}

/// The subjects of ids.
public enum Subjects {
    /// A shared vault.
    public enum Vault {}
    /// A member of one vault.
    public enum Member {}
    /// An invitation to one vault.
    public enum Invitation {}
    /// An item of one vault.
    public enum Item {}
    /// An account of the server.
    public enum Account {}
}

/// The id of a vault: the beginning of the hash of its founding entry.
public typealias VaultID = Identifier<Subjects.Vault>
/// The id of an account inside of one vault, drawn for this vault only.
public typealias MemberID = Identifier<Subjects.Member>
/// The id of an invitation.
public typealias InvitationID = Identifier<Subjects.Invitation>
/// The id of an item of a vault.
public typealias VaultItemID = Identifier<Subjects.Item>
/// The id of the account behind a member.
public typealias MemberAccountID = Identifier<Subjects.Account>
