/// The name of a member of a JSON object.
///
/// Two names are equal when their UTF-8 is equal (RFC 8259 section 8.3). `String` also considers canonically equivalent
/// texts equal, so a dictionary with such keys would lose one of two members.
struct MemberName: Hashable, Sendable, Comparable {
    let utf8: [UInt8]

    init(_ text: String) { utf8 = Array(text.utf8) }

    static func < (left: MemberName, right: MemberName) -> Bool { left.utf8.lexicographicallyPrecedes(right.utf8) }
}

extension [MemberName: JSONTree] {
    subscript(name: String) -> JSONTree? {
        get { self[MemberName(name)] }
        set { self[MemberName(name)] = newValue }
    }
}
