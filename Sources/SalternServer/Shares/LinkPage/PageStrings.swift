internal import HTTPCore

/// A language of the page.
enum PageLanguage: String, Sendable, CaseIterable {
    case english = "en"
    case german = "de"
}

/// All strings of the page in all languages: `{"page": {name: {language: text}}, "script": {…}}`. Strings of `page` are
/// in the HTML; the script shows those of `script`.
struct PageStrings: Sendable {
    private let document: JSONValue

    /// Reads the strings from a file of the program. Any other form is a programming error.
    init(_ bytes: [UInt8]) {
        document = (try? JSONParser().parse(bytes)) ?? .null
        precondition(!texts("page", .english).isEmpty, "the strings of the page are JSON")
    }

    /// Returns the strings of the HTML.
    func page(in language: PageLanguage) -> [String: HTML] {
        Dictionary(uniqueKeysWithValues: texts("page", language).map { ($0.name, HTML(escaping: $0.text)) })
    }

    /// Returns the script's strings as JSON for a `script` element, with `<` escaped, because only that could end the
    /// element.
    func script(in language: PageLanguage) -> HTML {
        var writer = JSONWriter(capacity: 8_192)
        writer.object { writer in
            for (name, text) in texts("script", language) { writer.member(name, text) }
        }
        return HTML(markup: String(decoding: writer.finish(), as: UTF8.self).replacing("<", with: "\\u003C"))
    }

    private func texts(_ part: String, _ language: PageLanguage) -> [(name: String, text: String)] {
        guard case .object(let all) = document, case .object(let strings) = all[part] else { return [] }
        return strings.members.map { member in
            guard case .object(let texts) = member.value, case .string(let text) = texts[language.rawValue] else {
                preconditionFailure("\(member.name.string) has a text in \(language.rawValue)")
            }
            return (member.name.string, text.string)
        }
    }
}
