/// The `Accept` field of a request (RFC 9110 §12.5.1): media ranges with weights.
///
/// Parameters other than `q` are refused: there is nothing here that they could choose between.
public struct AcceptList: Sendable {
    private struct Range {
        let type: Substring
        let subtype: Substring
        /// In thousandths.
        let quality: Int

        /// How closely the range describes a type: 2 by name, 1 by its kind, 0 like everything; nil when it does not.
        func specificity(for mediaType: (type: Substring, subtype: Substring)) -> Int? {
            if type == "*" { return 0 }
            guard type == mediaType.type else { return nil }
            if subtype == "*" { return 1 }
            return subtype == mediaType.subtype ? 2 : nil
        }
    }

    private let ranges: [Range]

    /// Reads the field; without one, everything is accepted.
    /// - Throws: 400 `malformed_accept`.
    public init(_ fields: RequestFields) throws(Problem) {
        guard let value = fields["accept"] else {
            ranges = [Range(type: "*", subtype: "*", quality: 1_000)]
            return
        }
        var ranges: [Range] = []
        for part in value.lowercased().split(separator: ",") {
            let part = Self.trimmed(part)
            // Empty elements of a list are skipped (RFC 9110 §5.6.1.2).
            if part.isEmpty { continue }
            guard let range = Self.range(part) else {
                throw Problem(
                    .badRequest, "malformed_accept",
                    detail: "Accept is a list of media types, each with a weight q at most.")
            }
            ranges.append(range)
        }
        self.ranges = ranges
    }

    /// Of several media types the one that is wanted most, the first of them when several are wanted alike.
    /// - Returns: Its index; nil when none is acceptable.
    public func best(of mediaTypes: [String]) -> Int? {
        var best: (index: Int, quality: Int)?
        for (index, mediaType) in mediaTypes.enumerated() {
            let quality = quality(of: mediaType)
            if quality > best?.quality ?? 0 { best = (index, quality) }
        }
        return best?.index
    }

    private func quality(of mediaType: String) -> Int {
        let parts = mediaType.split(separator: "/", maxSplits: 1)
        guard parts.count == 2 else { return 0 }
        var closest: (specificity: Int, quality: Int)?
        for range in ranges {
            guard let specificity = range.specificity(for: (parts[0], parts[1])) else { continue }
            if specificity > closest?.specificity ?? -1 { closest = (specificity, range.quality) }
        }
        return closest?.quality ?? 0
    }

    private static func range(_ text: Substring) -> Range? {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false).map(trimmed)
        let names = parts[0].split(separator: "/", omittingEmptySubsequences: false)
        guard names.count == 2, names.allSatisfy(isToken), names[0] != "*" || names[1] == "*", parts.count <= 2 else {
            return nil
        }
        guard parts.count == 2 else { return Range(type: names[0], subtype: names[1], quality: 1_000) }
        guard parts[1].hasPrefix("q="), let quality = weight(parts[1].dropFirst(2)) else { return nil }
        return Range(type: names[0], subtype: names[1], quality: quality)
    }

    /// A weight in thousandths (RFC 9110 §12.4.2): `0` or `1`, with at most three digits after the point.
    private static func weight(_ text: Substring) -> Int? {
        guard let first = text.first, first == "0" || first == "1" else { return nil }
        let rest = text.dropFirst()
        guard rest.isEmpty || rest.first == "." else { return nil }
        let digits = rest.dropFirst().utf8
        guard digits.count <= 3, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        var weight = first == "1" ? 1 : 0
        for digit in digits { weight = weight * 10 + Int(digit - 0x30) }
        for _ in digits.count..<3 { weight *= 10 }
        return weight <= 1_000 ? weight : nil
    }

    private static func isToken(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy(ASCII.isTokenCharacter)
    }

    private static func trimmed(_ text: Substring) -> Substring {
        let start = text.drop { $0 == " " || $0 == "\t" }
        guard let end = start.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return "" }
        return start[...end]
    }
}
