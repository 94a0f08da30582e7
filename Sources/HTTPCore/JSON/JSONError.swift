/// The reason for which bytes are no acceptable JSON, with the position.
public struct JSONError: Error, Sendable, Equatable {
    /// Stable names of the reasons.
    public enum Code: String, Sendable, CaseIterable {
        case malformed = "malformed_json"
        case notUTF8 = "not_utf8"
        case duplicateMember = "duplicate_member"
        case tooDeep = "json_too_deep"
        case tooManyMembers = "json_too_many_members"
        case tooManyValues = "json_too_many_values"
        case nameTooLong = "json_name_too_long"
        case numberOutOfRange = "number_out_of_range"
        case loneSurrogate = "lone_surrogate"
    }

    public let code: Code
    /// The position in bytes from the start of the document.
    public let offset: Int
    /// The name of a duplicate member.
    public let member: String?
    /// The exceeded limit, unless clients have it already.
    public let limit: Int?

    package init(_ code: Code, at offset: Int, member: String? = nil, limit: Int? = nil) {
        self.code = code
        self.offset = offset
        self.member = member
        self.limit = limit
    }
}

extension JSONError: ProblemConvertible {
    public var problem: Problem {
        let detail =
            switch code {
            case .malformed: "The body is not JSON (RFC 8259)."
            case .notUTF8: "The body is not UTF-8."
            case .duplicateMember: "A member is repeated in the same object."
            case .tooDeep: "Arrays and objects are nested too deeply."
            case .tooManyMembers: "An object has too many members."
            case .tooManyValues: "The document has more values than this route accepts."
            case .nameTooLong: "The name of a member is too long."
            case .numberOutOfRange: "A number is too large or too long."
            case .loneSurrogate: "A string contains an unpaired surrogate."
            }
        return Problem(
            .badRequest, code.rawValue, detail: detail, field: member, limit: limit,
            members: [(name: "offset", value: .integer(Int64(offset)))])
    }
}

/// The path of a value in a document, such as `kdf.iterations` or `operations[3].id`.
package enum JSONPath {
    package static func member(_ name: String, of parent: String) -> String {
        parent.isEmpty ? name : "\(parent).\(name)"
    }

    package static func element(_ index: Int, of parent: String) -> String {
        "\(parent)[\(index)]"
    }

    /// Returns the path of a field inside `parent`. A field that already has the path of its parents is unchanged, and
    /// nil stands for the parent.
    package static func absolute(_ field: String?, in parent: String) -> String {
        guard let field, field != parent else { return parent }
        let isAbsolute = field.hasPrefix(parent + ".") || field.hasPrefix(parent + "[")
        return isAbsolute ? field : member(field, of: parent)
    }

    /// Returns a name from a client, shortened for a reply.
    package static func abbreviated(_ name: String) -> String {
        name.utf8.count <= 64 ? name : String(name.unicodeScalars.prefix(61)) + "..."
    }
}
