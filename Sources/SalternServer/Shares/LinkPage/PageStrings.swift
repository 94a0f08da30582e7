internal import HTTPCore

/// A language that the page speaks.
enum PageLanguage: String, Sendable, CaseIterable {
    case english = "en"
    case german = "de"
}

/// Every string of the page in every language: `{"page": {name: {language: text}}, "script": {…}}`. Those of `page` stand
/// in the HTML; those of `script` are put on the page as the script finds something to say.
struct PageStrings: Sendable {
    private let document: JSONValue

    /// Reads the strings, which are a file of the program: anything but the form above is a programming error.
    init(_ bytes: [UInt8]) {
        document = (try? JSONParser().parse(bytes)) ?? .null
        precondition(!texts("page", .english).isEmpty, "the strings of the page are JSON")
    }

    /// The strings that stand in the HTML.
    func page(in language: PageLanguage) -> [String: HTML] {
        Dictionary(uniqueKeysWithValues: texts("page", language).map { ($0.name, HTML(escaping: $0.text)) })
    }

    /// The strings of the script as JSON that can stand in a `script` element, which nothing but `<` could end.
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
