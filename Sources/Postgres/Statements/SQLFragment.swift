/// A piece of SQL without parameters, for example a list of columns that several statements select.
///
/// It consists of literals, other fragments, numbers and raw values of enumerations. Strings from run time cannot get
/// into it.
public struct SQLFragment: ExpressibleByStringInterpolation, Sendable {
    /// The SQL.
    public let text: String

    private init(text: String) { self.text = text }

    public init(stringLiteral value: StaticString) { text = value.description }
    public init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }

    /// Collects the text of a fragment's literal.
    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        public init(literalCapacity: Int, interpolationCount: Int) {}

        public mutating func appendLiteral(_ literal: StaticString) { text += literal.description }

        public mutating func appendInterpolation(_ fragment: SQLFragment) { text += fragment.text }

        public mutating func appendInterpolation(_ number: some FixedWidthInteger) { text += String(number) }

        /// Appends a raw value as an SQL string.
        public mutating func appendInterpolation(_ value: some RawRepresentable<String>) {
            text += SQLFragment(value).text
        }
    }

    /// Quotes a raw value as an SQL string.
    public init(_ value: some RawRepresentable<String>) {
        text =
            "'" + value.rawValue.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''") + "'"
    }
}

extension Sequence<SQLFragment> {
    /// Concatenates the fragments, with `separator` between them.
    public func joined(separator: SQLFragment) -> SQLFragment {
        var result: SQLFragment?
        for fragment in self {
            if let before = result { result = "\(before)\(separator)\(fragment)" } else { result = fragment }
        }
        return result ?? ""
    }
}
