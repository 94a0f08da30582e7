public import Cryptography

/// Bytes that are canonical base64 in JSON.
public struct Base64Bytes: Codable, Hashable, Sendable {
    /// The decoded bytes.
    public var bytes: [UInt8]

    /// Wraps bytes, which are encoded as base64.
    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    public init(from decoder: any Decoder) throws {
        bytes = try decoder.base64 { try Base64.decode($0.utf8) }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Base64.encodeToString(bytes))
    }
}

extension Decoder {
    /// Reads one text that is canonical base64.
    fileprivate func base64<Bytes>(_ decode: (String) throws -> Bytes) throws -> Bytes {
        let container = try singleValueContainer()
        do {
            return try decode(container.decode(String.self))
        } catch is Base64.Failure {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "no canonical base64")
        }
    }
}

/// Secret bytes that are base64 in JSON: a password key, a recovery key. Never printed.
public struct SecretBytes: Codable, Sendable, Equatable {
    /// The decoded bytes.
    public let bytes: SecureBytes

    /// Wraps secret bytes, which are encoded as base64.
    public init(_ bytes: SecureBytes) { self.bytes = bytes }

    public init(from decoder: any Decoder) throws {
        bytes = try decoder.base64 { try Base64.decodeSecure($0.utf8) }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        guard let placeholders = encoder.userInfo[SecretJSON.Placeholders.key] as? SecretJSON.Placeholders else {
            return try container.encode(Base64.encodeToString(bytes))
        }
        let text = SecureBytes(count: Base64.encodedCount(bytes.count)) { Base64.encode(bytes, into: $0) }
        try container.encode(placeholders.add(text))
    }
}

/// A token as the server gives it out: text that opens something. Never printed.
public struct Token: Codable, Sendable, Equatable {
    /// The text, as ASCII.
    public let text: SecureBytes

    /// Wraps the text of a token, ASCII without spaces.
    public init(_ text: SecureBytes) { self.text = text }

    /// Stands for a session that this device has no token of. ``SalternAPI`` sends nothing with it, and fails as for a session
    /// that has ended.
    static let missing = Token(SecureBytes(copying: [UInt8]()))

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let string = try container.decode(String.self)
        let taken = decoder.userInfo[SecretJSON.Taken.key] as? SecretJSON.Taken
        let text = taken?.secret(string) ?? SecureBytes(copying: string.utf8)
        // It goes into a field of a request: nothing in it may end the field.
        let isToken = text.withUnsafeBytes { text in
            (1...512).contains(text.count) && text.allSatisfy { $0 > 0x20 && $0 < 0x7f }
        }
        guard isToken else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "no token")
        }
        self.text = text
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        let placeholders = encoder.userInfo[SecretJSON.Placeholders.key] as? SecretJSON.Placeholders
        // A text with a character that JSON escapes is left to the encoder. No server gives out such a token.
        let isPlain = text.withUnsafeBytes { text in
            text.allSatisfy { $0 >= 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
        }
        if let placeholders, isPlain { return try container.encode(placeholders.add(text)) }
        try container.encode(text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
    }
}
