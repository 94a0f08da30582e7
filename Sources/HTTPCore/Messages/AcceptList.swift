/// The `Accept` field of a request (RFC 9110 §12.5.1): media ranges with weights, read in place.
///
/// Parameters other than `q` are ignored: there is one form of each type here. `*` alone and weights such as `.2` are
/// read, because HttpURLConnection of Java sends both.
public enum AcceptList {
    /// Selects the preferred one of several media types in lower case, the first of equal ones.
    ///
    /// Without the field, or with one without elements, all types are acceptable.
    /// - Returns: Its index, or nil when none is acceptable.
    /// - Throws: 400 `malformed_accept`.
    public static func best(of mediaTypes: [StaticString], in fields: RequestFields) throws(Problem) -> Int? {
        let answer: Answer? =
            fields.withValue(named: "accept") { value -> Answer? in
                if Self.isEmpty(value) { return nil }
                var best: (index: Int, quality: Int)?
                for index in mediaTypes.indices {
                    guard let quality = quality(of: mediaTypes[index], in: value) else { return .malformed }
                    if quality > best?.quality ?? 0 { best = (index, quality) }
                }
                return .best(best?.index)
            } ?? nil
        switch answer {
        case nil: return mediaTypes.isEmpty ? nil : 0
        case .best(let index): return index
        case .malformed:
            throw Problem(
                .badRequest, "malformed_accept",
                detail: "Accept must be a list of media types, optionally with parameters and a weight q.")
        }
    }

    private enum Answer {
        case best(Int?)
        case malformed
    }

    /// Returns whether a list has at most empty elements (RFC 9110 §5.6.1.2).
    private static func isEmpty(_ value: UnsafeBufferPointer<UInt8>) -> Bool {
        value.allSatisfy { $0 == ASCII.comma || $0 == ASCII.space || $0 == ASCII.tab }
    }

    /// Returns the weight of the most specific range for the media type, or nil for a malformed field.
    private static func quality(of mediaType: StaticString, in value: UnsafeBufferPointer<UInt8>) -> Int? {
        var closest: (specificity: Int, quality: Int)?
        var elements = FieldParts(of: value, separator: ASCII.comma)
        while let element = elements.next() {
            // Empty elements of a list are skipped (RFC 9110 §5.6.1.2).
            if element.isEmpty { continue }
            guard let range = Range(element) else { return nil }
            guard let specificity = range.specificity(for: mediaType) else { continue }
            if specificity > closest?.specificity ?? -1 { closest = (specificity, range.quality) }
        }
        return closest?.quality ?? 0
    }

    private struct Range {
        private let type: MediaType
        /// The weight in thousandths.
        let quality: Int

        private static let wildcard = UInt8(ascii: "*")
        private var isAnyType: Bool { type.slash == 1 && type.name[0] == Self.wildcard }
        private var isAnySubtype: Bool {
            type.slash == type.name.count - 2 && type.name[type.slash + 1] == Self.wildcard
        }

        init?(_ text: UnsafeBufferPointer<UInt8>) {
            var quality: Int?
            let type = MediaType(text, readsBareWildcard: true) { parameter in
                guard parameter.isNamed("q") else { return true }
                guard quality == nil, let weight = AcceptList.weight(parameter.value) else { return false }
                quality = weight
                return true
            }
            guard let type else { return nil }
            self.type = type
            self.quality = quality ?? 1_000
            if isAnyType && !isAnySubtype { return nil }
        }

        /// Returns the specificity of the range for a type: 2 by name, 1 by kind, 0 for all types. Returns nil if it
        /// does not match.
        func specificity(for mediaType: StaticString) -> Int? {
            if isAnyType { return 0 }
            if type.isNamed(mediaType) { return 2 }
            guard isAnySubtype, mediaType.utf8CodeUnitCount > type.slash else { return nil }
            let kind = mediaType.utf8Start
            return (0...type.slash).allSatisfy { ASCII.lowercased(type.name[$0]) == kind[$0] } ? 1 : nil
        }
    }

    /// Reads a weight, in thousandths (RFC 9110 §12.4.2): `0` or `1`, with at most three digits after the point. A
    /// missing `0` before digits is read as one.
    private static func weight(_ text: [UInt8]) -> Int? {
        guard let first = text.first else { return nil }
        let isBare = first == ASCII.dot && text.count > 1
        guard isBare || first == ASCII.zero || first == ASCII.zero + 1 else { return nil }
        let rest = isBare ? text[...] : text.dropFirst()
        guard rest.isEmpty || rest.first == ASCII.dot else { return nil }
        let digits = rest.dropFirst()
        guard digits.count <= 3, digits.allSatisfy(ASCII.isDigit) else { return nil }
        var weight = isBare ? 0 : Int(first - ASCII.zero)
        for digit in digits { weight = weight * 10 + Int(digit - ASCII.zero) }
        for _ in digits.count..<3 { weight *= 10 }
        return weight <= 1_000 ? weight : nil
    }
}

/// The parts of a field value between separators, without spaces and tabs around them.
///
/// A separator inside a quoted string (RFC 9110 §5.6.4) belongs to the string.
struct FieldParts {
    private var rest: UnsafeBufferPointer<UInt8>?
    private let separator: UInt8

    init(of text: UnsafeBufferPointer<UInt8>, separator: UInt8) {
        rest = text
        self.separator = separator
    }

    /// Returns the next part, which can be empty; nil after the last one.
    mutating func next() -> UnsafeBufferPointer<UInt8>? {
        guard let text = rest else { return nil }
        let end = Self.endOfPart(text, separator)
        rest = end < text.count ? UnsafeBufferPointer(rebasing: text[(end + 1)...]) : nil
        return ASCII.trimmed(UnsafeBufferPointer(rebasing: text[..<end]))
    }

    private static func endOfPart(_ text: UnsafeBufferPointer<UInt8>, _ separator: UInt8) -> Int {
        var isQuoted = false
        var index = 0
        while index < text.count {
            let byte = text[index]
            if byte == ASCII.doubleQuote {
                isQuoted.toggle()
            } else if isQuoted, byte == ASCII.backslash {
                index += 1
            } else if !isQuoted, byte == separator {
                return index
            }
            index += 1
        }
        return text.count
    }
}
