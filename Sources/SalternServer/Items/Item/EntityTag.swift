internal import HTTPCore

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

/// What the preconditions of a read come to, in the order of RFC 9110 §13.2.2.
enum ReadCondition {
    case met
    /// `If-Match` has other tags: the read is not carried out.
    case failed
    /// `If-None-Match` has the tag: the client has it already.
    case notModified

    /// - Parameter revision: Of what is there; what is not there is 404, whatever the preconditions are (§13.2.1).
    init(_ fields: RequestFields, revision: Int64) {
        if let wanted = fields["if-match"], !EntityTagList(wanted).matchesStrongly(revision) {
            self = .failed
        } else if let known = fields["if-none-match"], EntityTagList(known).matches(revision) {
            self = .notModified
        } else {
            self = .met
        }
    }
}

/// The tags of a read's precondition (RFC 9110 §13.1.1, §13.1.2): any number of them, or `*`.
struct EntityTagList {
    private let tags: [Substring]

    init(_ value: String) {
        tags = value.split(separator: ",").map { tag in
            let tag = tag.drop { $0 == " " || $0 == "\t" }
            let end = tag.lastIndex { $0 != " " && $0 != "\t" }
            return end.map { tag[...$0] } ?? ""
        }
    }

    /// Whether the revision is among the tags, of which weak ones say nothing.
    func matchesStrongly(_ revision: Int64) -> Bool {
        let text = EntityTag.text(of: revision)
        return tags.contains { $0 == "*" || $0 == text }
    }

    /// Whether the revision is among the tags, weak ones included.
    func matches(_ revision: Int64) -> Bool {
        let text = EntityTag.text(of: revision)
        return tags.contains { $0 == "*" || $0 == text || ($0.hasPrefix("W/") && $0.dropFirst(2) == text) }
    }
}
