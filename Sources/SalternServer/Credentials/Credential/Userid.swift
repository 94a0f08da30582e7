internal import Cryptography
internal import Foundation
internal import HTTPCore
internal import Postgres

/// A login name in its canonical form.
///
/// Clients use the same bytes as salt. A name in another form is therefore rejected with its canonical form, and never
/// changed silently.
struct Userid: Hashable, Sendable {
    let string: String

    /// Maximum length in bytes of UTF-8.
    static let byteLimit = 254

    /// Maximum length of a text that is normalised, to bound the cost. No character's canonical form is shorter than a
    /// quarter of it.
    private static let inputLimit = 4 * byteLimit

    /// Reasons to reject a userid.
    enum Refusal: Error, Equatable {
        /// The text is not canonical; this is its canonical form.
        case notCanonical(String)
        /// The text is empty, too long, or has invisible characters or unassigned code points.
        case invalid
    }

    /// Accepts a canonical text.
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

    /// Returns true for text that is canonical without Unicode tables: printable ASCII without upper case, with no
    /// space at either end.
    private static func isPlainASCII(_ text: String.UTF8View) -> Bool {
        guard (1...byteLimit).contains(text.count), text.first != 0x20, text.last != 0x20 else { return false }
        return text.allSatisfy { (0x20..<0x7F).contains($0) && !(0x41...0x5A).contains($0) }
    }

    /// Returns true for 44 characters of canonical base64 of 32 bytes: a blinded userid.
    private static func isBlinded(_ text: String) -> Bool {
        guard text.utf8.count == 44 else { return false }
        return (try? Base64.decode(text.utf8))?.count == 32
    }

    /// Returns the blinded userid within surrounding white space, because lower case would change it.
    private static func blinded(within text: String) -> String? {
        let trimmed = trimmed(text)
        return isBlinded(trimmed) ? trimmed : nil
    }

    /// Returns true for characters that userids must not contain:
    ///
    /// - Invisible ones, which would make two accounts with names that appear equal: control and format characters,
    ///   default-ignorable code points, the blank Braille pattern, line and paragraph separators.
    /// - Unassigned code points, for which a later Unicode may define another canonical form.
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

    /// Stored userids were canonical at registration; Unicode may have changed since.
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

extension Userid {
    /// Returns the text in NFKC and lower case, without surrounding white space.
    ///
    /// Lower case can undo normalisation and the reverse, so both are repeated until nothing changes. A test covers all
    /// characters; four rounds are more than any of them needs.
    static func canonicalForm(of text: String) -> String {
        var form = text
        for _ in 0..<4 {
            let next = trimmed(lowercased(form.precomposedStringWithCompatibilityMapping))
            if next.utf8.elementsEqual(form.utf8) { return next }
            form = next
        }
        return form
    }

    /// Returns the text in lower case according to Unicode (chapter 3.13, with the final sigma), like Python and
    /// JavaScript. The standard library maps each character separately.
    private static func lowercased(_ text: String) -> String {
        guard text.unicodeScalars.contains(capitalSigma) else { return text.lowercased() }
        let scalars = Array(text.unicodeScalars)
        var lower = String.UnicodeScalarView()
        for (index, scalar) in scalars.enumerated() {
            if scalar == capitalSigma, isFinal(index, in: scalars) {
                lower.append(finalSigma)
            } else {
                lower.append(contentsOf: scalar.properties.lowercaseMapping.unicodeScalars)
            }
        }
        return String(lower)
    }

    private static let capitalSigma: Unicode.Scalar = "\u{3A3}"
    private static let finalSigma: Unicode.Scalar = "\u{3C2}"

    /// `Final_Sigma` of Unicode's table 3-17: a cased letter before it and none behind it, ignoring case-ignorable
    /// characters.
    private static func isFinal(_ index: Int, in scalars: [Unicode.Scalar]) -> Bool {
        let isIgnored: (Unicode.Scalar) -> Bool = { $0.properties.isCaseIgnorable }
        let before = scalars[..<index].last { !isIgnored($0) }
        let behind = scalars[(index + 1)...].first { !isIgnored($0) }
        return (before?.properties.isCased ?? false) && !(behind?.properties.isCased ?? false)
    }

    /// Returns the text without surrounding white space.
    static func trimmed(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard let first = scalars.firstIndex(where: { !$0.properties.isWhitespace }),
            let last = scalars.lastIndex(where: { !$0.properties.isWhitespace })
        else { return "" }
        return String(scalars[first...last])
    }
}
