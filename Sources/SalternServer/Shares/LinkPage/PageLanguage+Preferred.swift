internal import HTTPCore

extension PageLanguage {
    /// Selects the preferred language of `Accept-Language` (RFC 9110 §12.5.4, by lookup: `de-AT` selects `de`), and the
    /// first one of equal preference. English if there is none, and for a malformed field.
    init(preferredIn fields: RequestFields) {
        self = fields["accept-language"].flatMap(Self.preferred) ?? .english
    }

    private static func preferred(in list: String) -> PageLanguage? {
        var best: (language: PageLanguage, weight: Double)?
        for element in list.split(separator: ",") {
            let parts = element.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" } }
            guard let range = parts.first, let language = language(of: range) else { continue }
            let weight = parts.dropFirst().first { $0.lowercased().hasPrefix("q=") }.map {
                Double($0.dropFirst(2)) ?? 0
            }
            if (weight ?? 1) > best?.weight ?? 0 { best = (language, weight ?? 1) }
        }
        return best?.language
    }

    /// Returns the language of a range by its first subtag.
    private static func language(of range: String) -> PageLanguage? {
        range.split(separator: "-").first.flatMap { PageLanguage(rawValue: $0.lowercased()) }
    }
}
