/// The value of `If-Match` or `If-None-Match` (RFC 9110 §13.1.1, §13.1.2), the only parser of entity tags.
///
/// Several field lines are one list, and empty members are allowed (RFC 9110 §5.6.1). `*` excludes other members.
public struct EntityTagList: Sendable, Equatable {
    /// A tag (RFC 9110 §8.8.3).
    public struct Tag: Sendable, Equatable {
        /// The text between the quotes.
        public let opaque: String
        public let isWeak: Bool
    }

    /// True when the field is `*`.
    public let isAny: Bool
    public let tags: [Tag]

    /// Reads the field `name`. Returns nil without one.
    ///
    /// - Throws: 400 `malformed_precondition` when a member is no entity tag, unless the field is `*`.
    public static func read(_ name: String, in fields: RequestFields) throws(Problem) -> EntityTagList? {
        guard let list = fields.withValue(named: name, { EntityTagList(bytes: $0) }) else { return nil }
        guard let list else {
            throw Problem(
                .badRequest, "malformed_precondition",
                detail: "If-Match and If-None-Match must be * or a list of entity tags in double quotes.")
        }
        return list
    }

    private init?(bytes: UnsafeBufferPointer<UInt8>) {
        var isAny = false
        var tags: [Tag] = []
        var rest = bytes[...]
        while true {
            rest = rest.drop { $0 == ASCII.space || $0 == ASCII.tab || $0 == ASCII.comma }
            guard let first = rest.first else { break }
            if first == UInt8(ascii: "*") {
                guard !isAny else { return nil }
                isAny = true
                rest = rest.dropFirst()
            } else {
                guard let tag = Self.takeTag(&rest) else { return nil }
                tags.append(tag)
            }
            rest = rest.drop { $0 == ASCII.space || $0 == ASCII.tab }
            guard rest.isEmpty || rest.first == ASCII.comma else { return nil }
        }
        // A tag contradicts `*`: a change of one revision would become a change of any.
        guard !isAny || tags.isEmpty else { return nil }
        self.isAny = isAny
        self.tags = tags
    }

    /// Takes `"…"` or `W/"…"`. A backslash in a tag is an ordinary character.
    private static func takeTag(_ rest: inout Slice<UnsafeBufferPointer<UInt8>>) -> Tag? {
        // The W is upper case (RFC 9110 §8.8.3).
        let isWeak = rest.count > 1 && rest.first == UInt8(ascii: "W") && rest[rest.startIndex + 1] == ASCII.slash
        let quoted = isWeak ? rest.dropFirst(2) : rest
        guard quoted.first == ASCII.doubleQuote, let end = quoted.dropFirst().firstIndex(of: ASCII.doubleQuote) else {
            return nil
        }
        let opaque = quoted[(quoted.startIndex + 1)..<end]
        guard opaque.allSatisfy({ $0 > ASCII.space && $0 != 0x7F }) else { return nil }
        rest = quoted[(end + 1)...]
        return Tag(opaque: String(decoding: opaque, as: UTF8.self), isWeak: isWeak)
    }
}
