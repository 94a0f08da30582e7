/// The SQL of a statement whose parameters are its own properties.
///
///     static let sql: SQL<Self> = "SELECT name FROM users WHERE id = \(\.id)"
public typealias SQL<Root> = SQLTemplate<Root, NoContext>

/// SQL that names each parameter where it stands: by a property of the statement (`\(\.id)`), or by what the statement's
/// surroundings supply to all of its kind (``SQLContext``, for example `\(.account)`).
///
/// Numbers, order and types of the parameters follow from that. A parameter that stands in several places is sent once.
/// Templates nest: a part of a statement can be a template of its own, with parameters. Made once for each type of
/// statement.
public struct SQLTemplate<Root, Context: SQLContext>: ExpressibleByStringInterpolation, Sendable {
    /// Appends the value of one parameter.
    typealias Slot = @Sendable (Root, Context, inout Parameters) -> Void

    /// Appends what a property holds.
    typealias Append = @Sendable (Root, inout Parameters) -> Void

    enum Segment: Sendable {
        case text(String)
        case property(ParameterKey, Append)
        case context(Context.Parameter)

        /// A property of what `path` leads to.
        static func property<Part>(
            _ key: ParameterKey, _ append: @escaping SQLTemplate<Part, Context>.Append,
            at path: any KeyPath<Root, Part> & Sendable
        ) -> Segment { .property(key.of(path)) { root, parameters in append(root[keyPath: path], &parameters) } }

        /// What the surroundings that `path` leads to supply.
        static func context<Surroundings: SQLContext>(
            _ parameter: Surroundings.Parameter, at path: any KeyPath<Root, Surroundings> & Sendable
        ) -> Segment {
            .property(ParameterKey(name: parameter).of(path)) { root, parameters in
                root[keyPath: path].append(parameter, to: &parameters)
            }
        }

        /// The segment as part of another template: what becomes of a property there, and of what the surroundings supply.
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

    // One reference, so that handing a template on costs one retain.
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

    /// The template as part of statements of another type, of which the template's root and context are properties.
    public func lifted<Outer>(
        _ root: any KeyPath<Outer, Root> & Sendable, _ context: any KeyPath<Outer, Context> & Sendable
    ) -> SQL<Outer> {
        SQL(
            content.segments.compactMap {
                $0.placed(
                    property: { .property($0, $1, at: root) }, context: { .context($0, at: context) })
            })
    }

    /// What a template's literal is made with.
    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var segments: [Segment] = []

        public init(literalCapacity: Int, interpolationCount: Int) {
            segments.reserveCapacity(2 * interpolationCount + 1)
        }

        public mutating func appendLiteral(_ literal: StaticString) { segments.append(.text(literal.description)) }

        /// A property of the statement.
        public mutating func appendInterpolation<Value: PostgresValue>(
            _ property: any KeyPath<Root, Value> & Sendable
        ) {
            segments.append(
                .property(ParameterKey(property: property)) { root, parameters in
                    parameters.append(root[keyPath: property])
                })
        }

        /// What the surroundings supply.
        public mutating func appendInterpolation(_ parameter: Context.Parameter) {
            segments.append(.context(parameter))
        }

        public mutating func appendInterpolation(_ fragment: SQLFragment) { segments.append(.text(fragment.text)) }

        public mutating func appendInterpolation(_ number: some FixedWidthInteger) {
            segments.append(.text(String(number)))
        }

        /// A raw value as a string of SQL.
        public mutating func appendInterpolation(_ value: some RawRepresentable<String>) {
            segments.append(.text(SQLFragment(value).text))
        }

        /// A part with parameters.
        public mutating func appendInterpolation(_ part: SQLTemplate) { segments += part.content.segments }

        /// A part whose parameters are those of the surroundings.
        public mutating func appendInterpolation<Part: Rootless>(_ part: SQLTemplate<Part, Context>) {
            segments += part.content.segments.compactMap {
                $0.placed(property: { _, _ in nil }, context: { .context($0) })
            }
        }

        /// A part whose parameters are those of a property.
        public mutating func appendInterpolation<Part>(
            _ part: SQLTemplate<Part, Context>, of property: any KeyPath<Root, Part> & Sendable
        ) {
            segments += part.content.segments.compactMap {
                $0.placed(property: { .property($0, $1, at: property) }, context: { .context($0) })
            }
        }

        /// A part whose surroundings are a property.
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
    /// The templates one after another, with `separator` between them.
    public func joined<Root, Context>(separator: SQLFragment) -> SQLTemplate<Root, Context>
    where Element == SQLTemplate<Root, Context> {
        var result: SQLTemplate<Root, Context>?
        for template in self {
            if let before = result { result = "\(before)\(separator)\(template)" } else { result = template }
        }
        return result ?? ""
    }
}

/// The root of templates that have no properties.
///
/// It is `Never` and nothing else. A protocol, because the overload for a part of the template's own type has to win where
/// the root is `Never` itself, and of two that fit a generic one comes second.
public protocol Rootless {}

extension Never: Rootless {}

/// What statements of one kind are supplied with besides their own properties.
public protocol SQLContext: Sendable {
    /// The names of what is supplied.
    associatedtype Parameter: Hashable, Sendable

    /// Appends the value of one of them.
    func append(_ parameter: Parameter, to parameters: inout Parameters)
}

/// Nothing.
public struct NoContext: SQLContext {
    public init() {}
    public func append(_ parameter: Never, to parameters: inout Parameters) {}
}

/// What a parameter is known by while its template is made: the property that holds it, or the name of what surroundings
/// supply and the property that the surroundings are.
// Safe to share: it is made of values that are `Sendable` only, and nothing of them changes.
struct ParameterKey: Hashable, @unchecked Sendable {
    /// Where the surroundings are; nil when they are those of the template itself, or when there is no `name`.
    private let path: AnyKeyPath?
    private let name: AnyHashable?

    /// A property of the template's root.
    init(property: AnyKeyPath) {
        path = property
        name = nil
    }

    /// What the surroundings supply.
    init(name: some Hashable & Sendable) {
        path = nil
        self.name = AnyHashable(name)
    }

    private init(path: AnyKeyPath?, name: AnyHashable?) {
        self.path = path
        self.name = name
    }

    /// The same parameter as part of what `property` holds.
    func of<Root, Part>(_ property: any KeyPath<Root, Part> & Sendable) -> ParameterKey {
        let whole: AnyKeyPath = property
        return ParameterKey(path: path.map { whole.appending(path: $0) ?? $0 } ?? whole, name: name)
    }
}
