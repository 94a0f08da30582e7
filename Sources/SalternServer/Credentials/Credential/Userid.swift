internal import Cryptography
internal import HTTPCore
internal import Postgres

/// A login name in its canonical form.
///
/// The client has used the very same bytes as salt, so a name in another form is refused with the form that would
/// be accepted, and never changed silently.
struct Userid: Hashable, Sendable {
    let string: String

    /// The longest userid in bytes of UTF-8.
    static let byteLimit = 254

    /// The longest text that is normalised at all, so that a long one costs nothing: no character's canonical form is
    /// shorter than a quarter of it.
    private static let inputLimit = 4 * byteLimit

    /// Why a text is no userid.
    enum Refusal: Error, Equatable {
        /// It would be one in this form.
        case notCanonical(String)
        /// It is empty, too long, or has characters that nobody sees, or code points without a character.
        case invalid
    }

    /// Checks a text.
    init(_ text: String) throws(Refusal) {
        if Self.isPlainASCII(text.utf8) || Self.isBlinded(text) {
            string = text
            return
        }
        guard text.utf8.count <= Self.inputLimit else { throw .invalid }
        let canonical = Self.blinded(within: text) ?? Self.canonicalForm(of: text)
        guard (1...Self.byteLimit).contains(canonical.utf8.count),
            !canonical.unicodeScalars.contains(where: Self.isRefused)
        else { throw .invalid }
        guard canonical.utf8.elementsEqual(text.utf8) else { throw .notCanonical(canonical) }
        string = text
    }

    /// Reads the `userid` member.
    init(json: JSONValue) throws {
        try self.init(json.string())
    }

    /// Whether the text is canonical for reasons that need no Unicode tables: printable ASCII without upper-case
    /// letters, not beginning or ending with a space.
    private static func isPlainASCII(_ text: String.UTF8View) -> Bool {
        guard (1...byteLimit).contains(text.count), text.first != 0x20, text.last != 0x20 else { return false }
        return text.allSatisfy { (0x20..<0x7F).contains($0) && !(0x41...0x5A).contains($0) }
    }

    /// Whether the text is 44 characters of canonical base64 of 32 bytes: a name that the client has stretched too.
    private static func isBlinded(_ text: String) -> Bool {
        guard text.utf8.count == 44 else { return false }
        return (try? Base64.decode(text.utf8))?.count == 32
    }

    /// The blinded name that the text is with white space around it: lower-casing would make another name of it.
    private static func blinded(within text: String) -> String? {
        let trimmed = trimmed(text)
        return isBlinded(trimmed) ? trimmed : nil
    }

    /// What nobody sees, so that two names which look alike would be two accounts: control and format characters, those
    /// that are ignored where they cannot be shown, the Braille pattern without dots, the separators that are line ends by
    /// another name. And code points that a later Unicode may give a character with another canonical form.
    private static func isRefused(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .unassigned: true
        default: scalar.properties.isDefaultIgnorableCodePoint || scalar == "\u{2800}"
        }
    }
}

extension Userid: PostgresValue {
    static var postgresType: PostgresType { .text }

    func encode(to writer: inout ByteWriter) { string.encode(to: &writer) }

    /// What is stored was canonical when it came; Unicode may have learned since.
    static func decode(_ bytes: UnsafeRawBufferPointer?) -> Userid? {
        String.decode(bytes).map { Userid(stored: $0) }
    }

    private init(stored: String) { string = stored }
}

extension Userid.Refusal: ProblemConvertible {
    var problem: Problem {
        switch self {
        case .notCanonical(let canonical):
            Problem(
                .unprocessableContent, "userid_not_canonical",
                detail: "The userid must be in canonical form (NFKC, lower case, trimmed), also as part of the salt.",
                field: "userid", members: [(name: "canonical", value: .string(canonical))])
        case .invalid:
            Problem(
                .unprocessableContent, "invalid_userid",
                detail: "A userid must have 1 to 254 bytes of UTF-8 and no invisible characters.", field: "userid")
        }
    }
}
