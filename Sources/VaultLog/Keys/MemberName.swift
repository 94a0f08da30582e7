public import Cryptography

/// A name that a member claims: 1 to 64 bytes of UTF-8 without control and format characters and line separators.
public struct MemberName: Hashable, Sendable {
    /// The longest name, in bytes.
    public static let byteLimit = 64

    /// The name.
    public let text: String

    /// Checks a name.
    /// - Returns: nil for another length, and for characters that can hide or reorder others.
    public init?(_ text: String) {
        guard (1...Self.byteLimit).contains(text.utf8.count), text.unicodeScalars.allSatisfy(Self.isVisible) else {
            return nil
        }
        self.text = text
    }

    /// Reads a name that another device has made. A later version of Unicode may know characters that this platform
    /// does not: they are replaced.
    /// - Returns: nil for another length, and for characters that can hide or reorder others.
    public init?(received text: String) {
        guard (1...Self.byteLimit).contains(text.utf8.count) else { return nil }
        var shown = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            let isUnknown = scalar.properties.generalCategory == .unassigned
            guard isUnknown || Self.isVisible(scalar) else { return nil }
            // A question mark is not longer than any other character.
            shown.append(isUnknown ? "?" : scalar)
        }
        self.text = String(shown)
    }

    /// Compares byte by byte. `String` considers canonically equivalent texts equal.
    public static func == (left: MemberName, right: MemberName) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8)
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(Array(text.utf8)) }

    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse: false
        default: true
        }
    }

    /// Length (1) ‖ UTF-8 ‖ zeros: always 65 bytes, so that no length shows.
    var padded: [UInt8] {
        let bytes = Array(text.utf8)
        return [UInt8(bytes.count)] + bytes + [UInt8](repeating: 0, count: Self.byteLimit - bytes.count)
    }

    static let paddedCount = 1 + byteLimit

    init?(padded: ArraySlice<UInt8>) {
        guard padded.count == Self.paddedCount, let count = padded.first, count <= Self.byteLimit else { return nil }
        let bytes = padded.dropFirst().prefix(Int(count))
        // Decoding replaces bytes that are not UTF-8.
        let text = String(decoding: bytes, as: UTF8.self)
        guard padded.dropFirst(1 + Int(count)).allSatisfy({ $0 == 0 }), text.utf8.elementsEqual(bytes) else {
            return nil
        }
        self.init(received: text)
    }
}

/// The key of the names of members that join in one generation. A joiner has it before it has the generation's key.
public struct NameKey: Sendable, Equatable {
    let bytes: SecureBytes

    init(_ bytes: SecureBytes) { self.bytes = bytes }

    /// Derives the key of names from that of a generation.
    public init(_ key: GenerationKey) { bytes = VaultLabel.nameKey.derive(key.bytes) }
}

/// A member's name as it is in the log: nonce (12) ‖ ciphertext (65) ‖ tag (16).
///
/// The generation is the one that is current before the entry, or the first one. The member's id is the additional
/// data.
public struct SealedName: Hashable, Sendable {
    /// The sealed bytes.
    public let bytes: [UInt8]

    static let byteCount = 12 + MemberName.paddedCount + AESGCM.tagByteCount

    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = bytes
    }

    /// Seals a name.
    public init(_ name: MemberName, of member: MemberID, _ key: NameKey) throws(AESGCM.Failure) {
        try self.init(name, of: member, key, nonce: SecureRandom.bytes(12))
    }

    /// Seals with the caller's nonce. Only for test vectors.
    init(_ name: MemberName, of member: MemberID, _ key: NameKey, nonce: [UInt8]) throws(AESGCM.Failure) {
        bytes = try AESGCM.seal(
            name.padded, using: key.bytes, uniqueNonce: nonce, authenticating: member.bytes)
    }

    /// Opens the name.
    /// - Returns: nil when the key is another one, or the member sealed no valid name.
    public func open(of member: MemberID, _ key: NameKey) -> MemberName? {
        guard let opened = try? AESGCM.open(bytes, using: key.bytes, authenticating: member.bytes) else { return nil }
        return MemberName(padded: opened.withUnsafeBytes { [UInt8]($0) }[...])
    }
}
