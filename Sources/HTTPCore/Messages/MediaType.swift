/// A media type or media range of a field (RFC 9110 §8.3.1, §12.5.1). This is the only parser of media types.
///
/// It checks the grammar of the type and of its parameters. Empty parameters are allowed (RFC 9110 §5.6.6).
struct MediaType {
    /// Type and subtype with the slash between them, as sent.
    let name: UnsafeBufferPointer<UInt8>
    /// The position of the slash in ``name``.
    let slash: Int

    private static let anyType: StaticString = "*/*"

    /// Reads a type and calls `visit` for each parameter.
    ///
    /// - Parameters:
    ///   - text: One media type. The memory must stay valid during the value's use.
    ///   - readsBareWildcard: True if `*` alone is read as `*/*`.
    ///   - visit: Returns false for a parameter that makes the type unusable.
    /// - Returns: Nil when the text is no media type, or when `visit` returned false.
    init?(_ text: UnsafeBufferPointer<UInt8>, readsBareWildcard: Bool = false, _ visit: (Parameter) -> Bool) {
        var parts = FieldParts(of: text, separator: ASCII.semicolon)
        guard var name = parts.next() else { return nil }
        if readsBareWildcard, name.count == 1, name[0] == UInt8(ascii: "*") {
            name = UnsafeBufferPointer(start: Self.anyType.utf8Start, count: Self.anyType.utf8CodeUnitCount)
        }
        guard let slash = name.firstIndex(of: ASCII.slash), ASCII.isToken(name[..<slash]),
            ASCII.isToken(name[(slash + 1)...])
        else { return nil }
        self.name = name
        self.slash = slash
        while let part = parts.next() {
            if part.isEmpty { continue }
            guard let parameter = Parameter(part), visit(parameter) else { return nil }
        }
    }

    /// Returns whether type and subtype equal `literal`, which is in lower case.
    func isNamed(_ literal: StaticString) -> Bool { ASCII.equalsIgnoringCase(name, literal) }

    /// A parameter: a name, and a value that is a token or a quoted string.
    struct Parameter {
        private let name: UnsafeBufferPointer<UInt8>
        /// The token, or the content of the quoted string with its backslashes.
        private let content: UnsafeBufferPointer<UInt8>
        private let isQuoted: Bool

        /// Reads `name=value`. Returns nil for other text.
        fileprivate init?(_ text: UnsafeBufferPointer<UInt8>) {
            guard let equals = text.firstIndex(of: ASCII.equals), ASCII.isToken(text[..<equals]) else { return nil }
            name = UnsafeBufferPointer(rebasing: text[..<equals])
            let value = UnsafeBufferPointer(rebasing: text[(equals + 1)...])
            isQuoted = value.first == ASCII.doubleQuote
            guard isQuoted else {
                guard ASCII.isToken(value) else { return nil }
                content = value
                return
            }
            guard value.count > 1, value.last == ASCII.doubleQuote else { return nil }
            content = UnsafeBufferPointer(rebasing: value[1..<(value.count - 1)])
            guard Self.isQuotedText(content) else { return nil }
        }

        /// Returns whether this is the parameter `literal`, which is in lower case.
        func isNamed(_ literal: StaticString) -> Bool { ASCII.equalsIgnoringCase(name, literal) }

        /// The value without quotes and backslashes.
        var value: [UInt8] {
            guard isQuoted else { return Array(content) }
            var value: [UInt8] = []
            var isEscaped = false
            for byte in content {
                if !isEscaped, byte == ASCII.backslash {
                    isEscaped = true
                } else {
                    value.append(byte)
                    isEscaped = false
                }
            }
            return value
        }

        /// Returns whether the text is permitted between the quotes of a quoted string (RFC 9110 §5.6.4).
        private static func isQuotedText(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
            var isEscaped = false
            for byte in text {
                guard byte >= 0x20 && byte != 0x7F || byte == ASCII.tab else { return false }
                if !isEscaped, byte == ASCII.doubleQuote { return false }
                isEscaped = !isEscaped && byte == ASCII.backslash
            }
            return !isEscaped
        }
    }
}
