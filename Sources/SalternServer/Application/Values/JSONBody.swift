internal import Cryptography
internal import HTTPCore

/// Reads the bodies of all endpoints.
enum JSONBody {
    /// Parses the request's body as one object, passes its members to `read`, and rejects members that remain. The
    /// body's text is discarded; only the read values stay.
    ///
    /// A member named `password`, at any depth, is rejected before all other errors: such a client has not derived a
    /// key.
    ///
    /// - Parameter refuse: Rejects further documents, before the members are read.
    static func read<Value>(
        _ request: Request, refusing refuse: (JSONValue) throws -> Void = { _ in },
        _ read: (inout JSONMembers) throws -> Value
    ) throws -> Value {
        let document = try JSONParser(valueLimit: request.valueLimit).parse(request.takeBody())
        try refusePassword(in: document)
        try refuse(document)
        return try JSONMembers.read(document, read)
    }

    /// Reads a body that can be large. It yields to other work while it parses, and while `read` decodes sealed values.
    static func readLarge<Value>(
        _ request: Request, _ read: (inout JSONMembers) async throws -> Value
    ) async throws -> Value {
        let document = try await JSONParser(valueLimit: request.valueLimit).parse(
            request.takeBody(), pace: request.pace)
        try refusePassword(in: document)
        var members = try JSONMembers(document)
        let value = try await read(&members)
        try members.finish()
        return value
    }

    private static func refusePassword(in document: JSONValue) throws(PasswordRefused) {
        guard !document.contains(memberNamed: "password") else { throw PasswordRefused() }
    }
}

/// The error of a body with a member named `password`.
struct PasswordRefused: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unprocessableContent, "password_refused",
            detail: "The server never accepts a password. Send the PBKDF2 output as `passwordKey`.", field: "password")
    }
}

/// Reads the base64 of all requests (RFC 4648 §4).
///
/// White space around the text is dropped. The rest is canonical base64 with padding, in one piece or wrapped like MIME
/// and PEM (`Base64.decodeLineWrapped(_:)`).
enum Base64Text {
    /// Returns the bytes. Nil if the text is not base64.
    static func decode(_ text: JSONString) -> [UInt8]? {
        text.withUTF8 { try? Base64.decodeLineWrapped(UnsafeRawBufferPointer(trimmed($0))) }
    }

    /// Returns the bytes of a text that can be long, and yields to other work meanwhile. Nil if the text is not base64.
    static func decode(_ text: JSONString, pace: Pace) async -> [UInt8]? {
        guard text.count > Pace.slice else { return decode(text) }
        do throws(Base64.Failure) {
            var decoding = try text.withUTF8 { text throws(Base64.Failure) in
                try Base64Decoding(UnsafeRawBufferPointer(trimmed(text)))
            }
            while try text.withUTF8({ text throws(Base64.Failure) in
                try decoding.advance(UnsafeRawBufferPointer(trimmed(text)), characters: Pace.slice)
            }) { await pace.giveWay() }
            return decoding.finish()
        } catch {
            return nil
        }
    }

    /// Returns secret bytes without any other copy. Nil if the text is not base64. A secret is shorter than a line.
    static func decodeSecure(_ text: JSONString) -> SecureBytes? {
        text.withUTF8 { try? Base64.decodeSecure(UnsafeRawBufferPointer(trimmed($0))) }
    }

    /// Returns the bytes of base64url without padding (RFC 4648 §5), the form of WebAuthn. Nil for other text.
    static func decodeURL(_ text: JSONString) -> [UInt8]? {
        text.withUTF8 { try? Base64URL.decode(UnsafeRawBufferPointer(trimmed($0))) }
    }

    /// Returns the bytes of base64url without padding, which URLs can contain. Nil for other text.
    static func decodeURL(_ text: String) -> [UInt8]? {
        var text = text
        return text.withUTF8 { try? Base64URL.decode(UnsafeRawBufferPointer(trimmed($0))) }
    }

    /// Returns the text without surrounding spaces, tabs and line ends.
    private static func trimmed(_ text: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        guard let first = text.firstIndex(where: { !isWhiteSpace($0) }),
            let last = text.lastIndex(where: { !isWhiteSpace($0) })
        else { return UnsafeBufferPointer(rebasing: text[..<0]) }
        return UnsafeBufferPointer(rebasing: text[first...last])
    }

    private static func isWhiteSpace(_ byte: UInt8) -> Bool {
        byte == ASCII.space || byte == ASCII.tab || byte == ASCII.lineFeed || byte == ASCII.carriageReturn
    }
}

/// Reads codes that people paste or type, and ignores changes that their programs make.
///
/// White space and invisible characters are dropped. Digits of any script and full-width letters become ASCII, and
/// every dash becomes a hyphen. The code stays only in memory that is zeroed when it is released.
enum PastedCode {
    /// Maximum length of the text in bytes, far above any code with characters inserted.
    private static let byteLimit = 256

    /// Returns the code in ASCII, empty if the text has no visible characters.
    ///
    /// - Parameter keepsHyphens: True if hyphens are part of the code.
    /// - Returns: Nil if the text is too long, or has a character outside all codes.
    static func read(_ text: JSONString, keepsHyphens: Bool) -> ZeroizingBuffer? {
        guard text.count <= byteLimit else { return nil }
        var code = ZeroizingBuffer(capacity: text.count)
        var bytes = text.utf8.makeIterator()
        var decoder = Unicode.UTF8()
        while true {
            switch decoder.decode(&bytes) {
            case .emptyInput: return code
            case .error: return nil
            case .scalarValue(let scalar):
                if isIgnored(scalar) { continue }
                guard let byte = ascii(scalar) else { return nil }
                if byte == ASCII.minus, !keepsHyphens { continue }
                code.append(byte)
            }
        }
    }

    private static func isIgnored(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.properties.isWhitespace || scalar.properties.isDefaultIgnorableCodePoint { return true }
        switch scalar.properties.generalCategory {
        case .control, .format: return true
        default: return false
        }
    }

    private static func ascii(_ scalar: Unicode.Scalar) -> UInt8? {
        if scalar.isASCII { return UInt8(ascii: scalar) }
        // The full-width forms of ! to ~ (Unicode, block FF00).
        if (0xFF01...0xFF5E).contains(scalar.value) { return UInt8(scalar.value - 0xFEE0) }
        switch scalar.properties.generalCategory {
        case .decimalNumber: return scalar.properties.numericValue.map { ASCII.zero + UInt8($0) }
        case .dashPunctuation: return ASCII.minus
        // The minus sign is mathematical punctuation.
        default: return scalar == "\u{2212}" ? ASCII.minus : nil
        }
    }
}
