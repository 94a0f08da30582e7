internal import HTTPCore

/// A registered format of sealed bytes. The server checks the structure that is visible without the key.
enum SealedFormat: String, Sendable, CaseIterable {
    /// RNCryptor's data format, version 3: version and options, then IV, ciphertext and HMAC. In password mode two
    /// salts precede the IV.
    case rncryptorV3 = "rncryptor-v3"
    /// A 12-byte nonce, the ciphertext and a 16-byte tag.
    case aes256GCM = "aes-256-gcm"
    /// A 16-byte IV, the ciphertext and a 16-byte tag.
    case aes256GCMIV16 = "aes-256-gcm-iv16"
    /// The format of this project's client kit: version, key id, a 12-byte nonce, the padded ciphertext and a 16-byte
    /// tag.
    case saltern1 = "saltern-1"
    /// Any bytes that are not evidently plaintext.
    case opaque

    /// The positions of the parts of sealed bytes.
    struct Layout: Equatable {
        /// The number of bytes with a prescribed value.
        var header: Int
        /// The number of bytes before the ciphertext, including the header.
        var beforeCiphertext: Int
        /// The number of bytes after it.
        var afterCiphertext: Int
    }

    /// Checks the structure.
    ///
    /// - Returns: The layout. Nil if the bytes do not have the format's structure.
    func layout(of sealed: [UInt8]) -> Layout? {
        switch self {
        case .rncryptorV3: Self.rncryptorLayout(of: sealed)
        case .aes256GCM: Self.layout(nonce: 12, of: sealed)
        case .aes256GCMIV16: Self.layout(nonce: 16, of: sealed)
        case .saltern1: Self.saltern1Layout(of: sealed)
        case .opaque: sealed.isEmpty ? nil : Layout(header: 0, beforeCiphertext: 0, afterCiphertext: 0)
        }
    }

    private static func layout(nonce: Int, of sealed: [UInt8]) -> Layout? {
        let tag = 16
        guard sealed.count >= nonce + tag else { return nil }
        return Layout(header: 0, beforeCiphertext: nonce, afterCiphertext: tag)
    }

    /// docs/protocol.md, "The format saltern-1": the length of the ciphertext hides that of the plaintext. It is a
    /// multiple of 64 up to 1 KiB, and a PADMÉ length above (Nikitin et al., 2019, section 4).
    private static func saltern1Layout(of sealed: [UInt8]) -> Layout? {
        let layout = Layout(header: 1, beforeCiphertext: 1 + 4 + 12, afterCiphertext: 16)
        let count = sealed.count - layout.beforeCiphertext - layout.afterCiphertext
        guard sealed.first == 1, count >= 64, count % 64 == 0 else { return nil }
        if count > 1_024 {
            let exponent = Int.bitWidth - 1 - count.leadingZeroBitCount
            let kept = Int.bitWidth - exponent.leadingZeroBitCount
            guard count & ((1 << (exponent - kept)) - 1) == 0 else { return nil }
        }
        return layout
    }

    /// RNCryptor-Spec-v3: CBC with PKCS #7 padding, so the ciphertext is at least one block.
    private static func rncryptorLayout(of sealed: [UInt8]) -> Layout? {
        guard sealed.count >= 2, sealed[0] == 3 else { return nil }
        let salts: Int
        switch sealed[1] {
        case 0: salts = 0
        case 1: salts = 16
        default: return nil
        }
        let layout = Layout(header: 2, beforeCiphertext: 2 + salts + 16, afterCiphertext: 32)
        let ciphertext = sealed.count - layout.beforeCiphertext - layout.afterCiphertext
        guard ciphertext >= 16, ciphertext % 16 == 0 else { return nil }
        return layout
    }
}

/// Bytes that have the structure of a sealed format and are not evidently plaintext.
struct SealedBytes: Sendable, Equatable {
    let bytes: [UInt8]

    /// Checks the bytes.
    init(_ bytes: [UInt8], format: SealedFormat) throws(SealedRefusal) {
        guard let layout = format.layout(of: bytes) else { throw .malformed(format) }
        guard !PlaintextEvidence.isFound(in: bytes, layout: layout) else { throw .notEncrypted }
        self.bytes = bytes
    }

    /// Decodes and checks base64.
    init(base64 text: JSONString, format: SealedFormat) throws(SealedRefusal) {
        guard let decoded = Base64Text.decode(text) else { throw .notBase64 }
        try self.init(decoded, format: format)
    }

    /// Decodes and checks base64 that can be long, and yields to other work meanwhile.
    init(base64 text: JSONString, format: SealedFormat, pace: Pace) async throws(SealedRefusal) {
        guard let decoded = await Base64Text.decode(text, pace: pace) else { throw .notBase64 }
        try self.init(decoded, format: format)
    }
}

/// The id of the key with which the bytes of a request are sealed.
enum SealedKey: Equatable {
    /// The request has no sealed bytes.
    case none
    /// All have the format `saltern-1` and this key.
    case one(Int32)
    /// They have another format or several keys.
    case others

    init(_ format: SealedFormat, _ title: SealedBytes?, _ body: SealedBytes) {
        guard format == .saltern1 else {
            self = .others
            return
        }
        // The version is the first byte, and the id of the key the next four.
        let ids = [title, body].compactMap { $0?.bytes[1..<5].reduce(0 as UInt32) { $0 << 8 | UInt32($1) } }
        self = ids.reduce(SealedKey.none) { $0.joined(with: .one(Int32(bitPattern: $1))) }
    }

    init(of contents: [ItemContent]) {
        self = contents.reduce(.none) { $0.joined(with: SealedKey($1.format, $1.title, $1.body)) }
    }

    /// Returns the key of the bytes of both.
    func joined(with other: SealedKey) -> SealedKey {
        self == .none || self == other ? other : other == .none ? self : .others
    }
}

/// Reasons to reject bytes as sealed.
enum SealedRefusal: ProblemConvertible, Equatable {
    /// The name is no registered format, or a disabled one.
    case unknownFormat
    /// The text is not base64.
    case notBase64
    /// The bytes do not have the structure of their format.
    case malformed(SealedFormat)
    /// The bytes are evidently plaintext.
    case notEncrypted
    /// There are more bytes than the limit.
    case tooLong(limit: Int)

    var problem: Problem {
        switch self {
        case .unknownFormat:
            Problem(.unprocessableContent, "unknown_format", detail: "The format is unknown: see GET /v1/service.")
        case .notBase64:
            Problem(
                .unprocessableContent, "not_base64",
                detail: "Sealed bytes must be canonical base64. Line ends after every 64 or 76 characters are accepted."
            )
        case .malformed(let format):
            Problem(
                .unprocessableContent, "malformed_sealed_bytes",
                detail: "The bytes do not have the structure of \(format.rawValue).")
        case .notEncrypted:
            Problem(
                .unprocessableContent, "not_encrypted",
                detail: "The bytes are not encrypted. The server stores only encrypted content.")
        case .tooLong(let limit):
            Problem(
                .unprocessableContent, "too_long", detail: "There are more sealed bytes than `limit`.", limit: limit)
        }
    }
}
