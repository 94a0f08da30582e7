internal import HTTPCore

extension PageLanguage {
    /// The language that `Accept-Language` wants most (RFC 9110 §12.5.4, by lookup: `de-AT` gets `de`); of those that are
    /// wanted alike, the first. English when it wants none of them, and for a field that is malformed.
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

    /// The language of a range, whose first subtag alone counts.
    private static func language(of range: String) -> PageLanguage? {
        range.split(separator: "-").first.flatMap { PageLanguage(rawValue: $0.lowercased()) }
    }
}
