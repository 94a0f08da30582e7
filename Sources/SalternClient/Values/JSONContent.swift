package import Cryptography
internal import Foundation

/// Encodes content as the value of a JSON member, piece by piece, as text or base64.
package struct JSONContent {
    package enum Form: String, Sendable {
        /// A string with the content, which is UTF-8.
        case text
        /// A string with the content in base64.
        case data
    }

    private let form: Form
    private var text = UTF8Pieces()
    /// One or two bytes that make a group of three with the next piece.
    private var rest: [UInt8] = []

    package init(_ form: Form) { self.form = form }

    /// Returns the characters of the string for a piece, without quotation marks; nil when the content is not UTF-8.
    package mutating func append(_ piece: SecureBytes) -> [UInt8]? {
        switch form {
        case .text: return text.append(piece).flatMap(Self.escaped)
        case .data:
            let bytes = rest + piece.withUnsafeBytes { [UInt8]($0) }
            let whole = bytes.count - bytes.count % 3
            rest = Array(bytes[whole...])
            return Base64.encode(Array(bytes[..<whole]))
        }
    }

    /// Returns the last characters; nil when the content is not UTF-8.
    package mutating func end() -> [UInt8]? {
        switch form {
        case .text: text.isComplete ? [] : nil
        case .data: Base64.encode(rest)
        }
    }

    private static func escaped(_ text: String) -> [UInt8]? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes]
        return (try? encoder.encode(text)).map { Array($0.dropFirst().dropLast()) }
    }

    /// Splits an object's JSON at the empty value of the form's member, within its quotation marks.
    ///
    /// The object's members are sorted by name. None of those before `data` and after `text` is an object.
    package static func split(_ json: [UInt8], at form: Form) -> (head: [UInt8], tail: [UInt8])? {
        let json = Data(json)
        let member = Data("\"\(form.rawValue)\":\"\"".utf8)
        guard let found = json.range(of: member, options: form == .text ? .backwards : []) else { return nil }
        return (Array(json[..<(found.upperBound - 1)]), Array(json[(found.upperBound - 1)...]))
    }
}
