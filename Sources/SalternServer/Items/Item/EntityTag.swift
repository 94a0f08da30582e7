/// A revision as an entity tag: `"7"`.
enum EntityTag {
    static func text(of revision: Int64) -> String { "\"\(revision)\"" }

    /// Reads one strong tag with a revision: decimal, from 1, without leading zeros.
    static func revision(_ text: String) -> Int64? {
        guard text.utf8.count >= 3, text.hasPrefix("\""), text.hasSuffix("\"") else { return nil }
        let digits = text.dropFirst().dropLast()
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), digits.first != "0" else { return nil }
        return Int64(digits)
    }
}

/// The `If-None-Match` of a read (RFC 9110 §13.1.2): any number of tags, compared weakly, or `*`.
struct EntityTagList {
    private let tags: [Substring]

    init(_ value: String) {
        tags = value.split(separator: ",").map { tag in
            let tag = tag.drop { $0 == " " || $0 == "\t" }
            let end = tag.lastIndex { $0 != " " && $0 != "\t" }
            return end.map { tag[...$0] } ?? ""
        }
    }

    /// Whether the revision is among the tags.
    func matches(_ revision: Int64) -> Bool {
        let text = EntityTag.text(of: revision)
        return tags.contains { $0 == "*" || $0 == text || ($0.hasPrefix("W/") && $0.dropFirst(2) == text) }
    }
}
