/// The SQL of a statement whose parameters are its own properties.
///
///     static let sql: SQL<Self> = "SELECT name FROM users WHERE id = \(\.id)"
public typealias SQL<Root> = SQLTemplate<Root, NoContext>

/// A statement's SQL with its parameters in place.
///
/// A parameter is a property of the statement (`\(\.id)`), or comes from the context that all statements of a kind
/// share (``SQLContext``, for example `\(.account)`). Numbers, order and types of the parameters follow from the
/// template. A parameter that occurs several times is sent once. Templates nest: a part of a statement can be a
/// template with parameters. A template is made once for each type of statement.
public struct SQLTemplate<Root, Context: SQLContext>: ExpressibleByStringInterpolation, Sendable {
    /// Appends the value of one parameter.
    typealias Slot = @Sendable (Root, Context, inout Parameters) -> Void

    /// Appends a property's value.
    typealias Append = @Sendable (Root, inout Parameters) -> Void

    enum Segment: Sendable {
        case text(String)
        case property(ParameterKey, Append)
        case context(Context.Parameter)

        /// Makes a segment for a property of the value at `path`.
        static func property<Part>(
            _ key: ParameterKey, _ append: @escaping SQLTemplate<Part, Context>.Append,
            at path: any KeyPath<Root, Part> & Sendable
        ) -> Segment { .property(key.of(path)) { root, parameters in append(root[keyPath: path], &parameters) } }

        /// Makes a segment for a parameter of the context at `path`.
        static func context<Surroundings: SQLContext>(
            _ parameter: Surroundings.Parameter, at path: any KeyPath<Root, Surroundings> & Sendable
        ) -> Segment {
            .property(ParameterKey(name: parameter).of(path)) { root, parameters in
                root[keyPath: path].append(parameter, to: &parameters)
            }
        }

        /// Converts the segment for use in another template. The closures convert a property and a parameter of the
        /// context.
        func placed<Outer, Surroundings>(
            property: (ParameterKey, @escaping Append) -> SQLTemplate<Outer, Surroundings>.Segment?,
            context: (Context.Parameter) -> SQLTemplate<Outer, Surroundings>.Segment
        ) -> SQLTemplate<Outer, Surroundings>.Segment? {
            switch self {
            case .text(let text): .text(text)
            case .property(let key, let append): property(key, append)
            case .context(let parameter): context(parameter)
            }
        }
    }

    // One reference: passing a template on costs one retain.
    private final class Content: Sendable {
        let segments: [Segment]
        let text: String
        let slots: [Slot]

        init(_ segments: [Segment]) {
            self.segments = segments
            var text = ""
            var slots: [Slot] = []
            var numbers: [ParameterKey: Int] = [:]
            func place(_ key: ParameterKey, _ slot: @escaping Slot) {
                if numbers[key] == nil {
                    slots.append(slot)
                    numbers[key] = slots.count
                }
                text += "$\(numbers[key] ?? 0)"
            }
            for segment in segments {
                switch segment {
                case .text(let literal): text += literal
                case .property(let key, let append):
                    place(key) { root, _, parameters in append(root, &parameters) }
                case .context(let parameter):
                    place(ParameterKey(name: parameter)) { _, context, parameters in
                        context.append(parameter, to: &parameters)
                    }
                }
            }
            self.text = text
            self.slots = slots
        }
    }

    private let content: Content

    private init(_ segments: [Segment]) { content = Content(segments) }

    public init(stringLiteral value: StaticString) { self.init([.text(value.description)]) }
    public init(stringInterpolation: StringInterpolation) { self.init(stringInterpolation.segments) }

    /// The SQL with `$1`, `$2`, … for parameters.
    public var text: String { content.text }

    /// Appends the parameters in the order of their numbers.
    public func bind(_ root: Root, _ context: Context, to parameters: inout Parameters) {
        for slot in content.slots { slot(root, context, &parameters) }
    }

    /// Converts the template for statements of another type, which have the template's root and context as properties.
    public func lifted<Outer>(
        _ root: any KeyPath<Outer, Root> & Sendable, _ context: any KeyPath<Outer, Context> & Sendable
    ) -> SQL<Outer> {
        SQL(
            content.segments.compactMap {
                $0.placed(
                    property: { .property($0, $1, at: root) }, context: { .context($0, at: context) })
            })
    }

    /// Converts the text for tables of the same form with other names. The parameters stay.
    public func renamed(_ rename: (String) -> String) -> SQLTemplate {
        var joined: [Segment] = []
        for segment in content.segments {
            if case .text(let text) = segment, case .text(let before)? = joined.last {
                joined[joined.count - 1] = .text(before + text)
            } else {
                joined.append(segment)
            }
        }
        return SQLTemplate(
            joined.map { segment in
                if case .text(let text) = segment { .text(rename(text)) } else { segment }
            })
    }

    /// Collects the segments of a template's literal.
    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var segments: [Segment] = []

        public init(literalCapacity: Int, interpolationCount: Int) {
            segments.reserveCapacity(2 * interpolationCount + 1)
        }

        public mutating func appendLiteral(_ literal: StaticString) { segments.append(.text(literal.description)) }

        /// Appends a property of the statement.
        public mutating func appendInterpolation<Value: PostgresValue>(
            _ property: any KeyPath<Root, Value> & Sendable
        ) {
            segments.append(
                .property(ParameterKey(property: property)) { root, parameters in
                    parameters.append(root[keyPath: property])
                })
        }

        /// Appends a parameter of the context.
        public mutating func appendInterpolation(_ parameter: Context.Parameter) {
            segments.append(.context(parameter))
        }

        public mutating func appendInterpolation(_ fragment: SQLFragment) { segments.append(.text(fragment.text)) }

        public mutating func appendInterpolation(_ number: some FixedWidthInteger) {
            segments.append(.text(String(number)))
        }

        /// Appends a raw value as an SQL string.
        public mutating func appendInterpolation(_ value: some RawRepresentable<String>) {
            segments.append(.text(SQLFragment(value).text))
        }

        /// Appends a part with parameters.
        public mutating func appendInterpolation(_ part: SQLTemplate) { segments += part.content.segments }

        /// Appends a part that only has parameters of the context.
        public mutating func appendInterpolation<Part: Rootless>(_ part: SQLTemplate<Part, Context>) {
            segments += part.content.segments.compactMap {
                $0.placed(property: { _, _ in nil }, context: { .context($0) })
            }
        }

        /// Appends a part with the parameters of a property.
        public mutating func appendInterpolation<Part>(
            _ part: SQLTemplate<Part, Context>, of property: any KeyPath<Root, Part> & Sendable
        ) {
            segments += part.content.segments.compactMap {
                $0.placed(property: { .property($0, $1, at: property) }, context: { .context($0) })
            }
        }

        /// Appends a part whose context is a property.
        public mutating func appendInterpolation<Surroundings>(
            _ part: SQLTemplate<Never, Surroundings>, from property: any KeyPath<Root, Surroundings> & Sendable
        ) {
            segments += part.content.segments.compactMap {
                $0.placed(property: { _, _ in nil }, context: { .context($0, at: property) })
            }
        }
    }
}

extension Sequence {
    /// Concatenates the templates, with `separator` between them.
    public func joined<Root, Context>(separator: SQLFragment) -> SQLTemplate<Root, Context>
    where Element == SQLTemplate<Root, Context> {
        var result: SQLTemplate<Root, Context>?
        for template in self {
            if let before = result { result = "\(before)\(separator)\(template)" } else { result = template }
        }
        return result ?? ""
    }
}

/// The root of templates that have no properties. Only `Never` conforms.
///
/// It is a protocol because two overloads fit where the root is `Never` itself. The overload for a part of the
/// template's own type has to win there, and Swift ranks the generic one lower.
public protocol Rootless {}

extension Never: Rootless {}

/// Supplies statements of one kind with parameters besides their own properties.
public protocol SQLContext: Sendable {
    /// The names of the parameters.
    associatedtype Parameter: Hashable, Sendable

    /// Appends the value of one parameter.
    func append(_ parameter: Parameter, to parameters: inout Parameters)
}

/// A context without parameters.
public struct NoContext: SQLContext {
    public init() {}
    public func append(_ parameter: Never, to parameters: inout Parameters) {}
}

/// Identifies a parameter while its template is made: by its property, or by a context's name for it and the context's
/// property.
// Safe to share: it consists of immutable `Sendable` values.
struct ParameterKey: Hashable, @unchecked Sendable {
    /// The property that is the context; nil for the template's own context, and when there is no `name`.
    private let path: AnyKeyPath?
    private let name: AnyHashable?

    /// Identifies a property of the template's root.
    init(property: AnyKeyPath) {
        path = property
        name = nil
    }

    /// Identifies a parameter of the context.
    init(name: some Hashable & Sendable) {
        path = nil
        self.name = AnyHashable(name)
    }

    private init(path: AnyKeyPath?, name: AnyHashable?) {
        self.path = path
        self.name = name
    }

    /// Returns the key of the same parameter within the value of `property`.
    func of<Root, Part>(_ property: any KeyPath<Root, Part> & Sendable) -> ParameterKey {
        let whole: AnyKeyPath = property
        return ParameterKey(path: path.map { whole.appending(path: $0) ?? $0 } ?? whole, name: name)
    }
}

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
