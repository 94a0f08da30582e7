/// Text that is HTML already.
struct HTML: Sendable, Equatable {
    let markup: String

    /// Takes markup of the program's own.
    init(markup: String) { self.markup = markup }

    /// Turns any text into markup that shows it, between tags and in quoted attributes.
    init(escaping text: String) {
        var markup = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": markup += "&amp;"
            case "<": markup += "&lt;"
            case ">": markup += "&gt;"
            case "\"": markup += "&quot;"
            case "'": markup += "&#39;"
            default: markup.unicodeScalars.append(character)
            }
        }
        self.markup = markup
    }
}

/// A page with places that are named `{{like this}}`.
struct PageTemplate: Sendable {
    /// What stands before each place, and the place's name.
    private let parts: [(text: String, place: String)]
    private let end: String

    /// Reads a template, which is a file of the program.
    init(_ bytes: [UInt8]) {
        var parts: [(text: String, place: String)] = []
        var rest = String(decoding: bytes, as: UTF8.self)[...]
        while let start = rest.firstRange(of: "{{"), let end = rest[start.upperBound...].firstRange(of: "}}") {
            parts.append((String(rest[..<start.lowerBound]), String(rest[start.upperBound..<end.lowerBound])))
            rest = rest[end.upperBound...]
        }
        self.parts = parts
        self.end = String(rest)
    }

    /// The page. A place without a value, and a value without a place, is a programming error.
    func filled(with values: [String: HTML]) -> [UInt8] {
        precondition(Set(parts.map(\.place)) == Set(values.keys), "every place of the page has a value")
        var page = ""
        for part in parts { page += part.text + (values[part.place]?.markup ?? "") }
        return Array((page + end).utf8)
    }
}
