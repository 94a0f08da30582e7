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
    /// Decodes one text that must be canonical base64.
    fileprivate func base64<Bytes>(_ decode: (String) throws -> Bytes) throws -> Bytes {
        let container = try singleValueContainer()
        do {
            return try decode(container.decode(String.self))
        } catch is Base64.Failure {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not canonical base64")
        }
    }
}

/// Secret bytes that are base64 in JSON, such as a password key or a recovery key. They are never printed.
public struct SecretBytes: Codable, Sendable, Equatable {
    /// The decoded bytes.
    public let bytes: SecureBytes

    /// Wraps secret bytes, which are encoded as base64.
    public init(_ bytes: SecureBytes) { self.bytes = bytes }

    public init(from decoder: any Decoder) throws {
        let taken = decoder.userInfo[SecretJSON.Taken.key] as? SecretJSON.Taken
        bytes = try decoder.base64 { text in
            if let secret = taken?.secret(text) { return try Base64.decodeSecure(secret) }
            return try Base64.decodeSecure(text.utf8)
        }
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

/// A token from the server, such as a session token. It is never printed.
public struct Token: Codable, Sendable, Equatable {
    /// The text, as ASCII.
    public let text: SecureBytes

    /// Wraps the text of a token, ASCII without spaces.
    public init(_ text: SecureBytes) { self.text = text }

    /// Represents a session without a token on this device. ``SalternAPI`` sends no request with it, and throws the
    /// error of an ended session.
    static let missing = Token(SecureBytes(copying: [UInt8]()))

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let string = try container.decode(String.self)
        let taken = decoder.userInfo[SecretJSON.Taken.key] as? SecretJSON.Taken
        let text = taken?.secret(string) ?? SecureBytes(copying: string.utf8)
        // The text goes into a field of a request and must not end the field.
        let isToken = text.withUnsafeBytes { text in
            (1...512).contains(text.count) && text.allSatisfy { $0 > 0x20 && $0 < 0x7f }
        }
        guard isToken else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a token")
        }
        self.text = text
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        let placeholders = encoder.userInfo[SecretJSON.Placeholders.key] as? SecretJSON.Placeholders
        // The encoder handles a text with a character that JSON escapes. No server issues such a token.
        let isPlain = text.withUnsafeBytes { text in
            text.allSatisfy { $0 >= 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
        }
        if let placeholders, isPlain { return try container.encode(placeholders.add(text)) }
        try container.encode(text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
    }
}
