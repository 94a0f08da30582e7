public import HTTPCore

extension Identifier: PathParameterConvertible {
    public init?(pathParameter text: String) {
        var text = text
        guard let identifier = text.withUTF8({ Identifier(text: $0) }) else { return nil }
        self = identifier
    }
}
