/// Text in HTML.
struct HTML: Sendable, Equatable {
    let markup: String

    /// Accepts markup of the program itself.
    init(markup: String) { self.markup = markup }

    /// Escapes text for use between tags and in quoted attributes.
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

/// A page with placeholders of the form `{{name}}`.
struct PageTemplate: Sendable {
    /// The text before each placeholder, and its name.
    private let parts: [(text: String, place: String)]
    private let end: String

    /// Reads a template from a file of the program.
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

    /// Returns the page. A placeholder without a value, or a value without a placeholder, is a programming error.
    func filled(with values: [String: HTML]) -> [UInt8] {
        precondition(Set(parts.map(\.place)) == Set(values.keys), "every place of the page has a value")
        var page = ""
        for part in parts { page += part.text + (values[part.place]?.markup ?? "") }
        return Array((page + end).utf8)
    }
}
