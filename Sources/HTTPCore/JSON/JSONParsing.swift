/// The parsing of one document as far as it has come: a value that can be left and gone on with at any byte.
///
/// It writes in place: what is written with escapes becomes the text that they stand for where they stood, which is
/// never longer. So the strings of the result are slices of the document, and a document is never in memory twice.
public struct JSONParsing: ~Copyable {
    /// What may come next.
    enum Step {
        case value
        /// A value, or the end of an array that has none yet.
        case firstElement
        case name
        /// A name, or the end of an object that has none yet.
        case firstName
        /// The rest of a string; a name, or a value.
        case string(isName: Bool)
        case colon
        /// A comma, or the end of what is open.
        case separator
        /// White space.
        case end(JSONValue)
    }

    /// An array or an object whose end has not come.
    struct Open {
        let isObject: Bool
        var elements: [JSONValue] = []
        var members: [JSONObject.Member] = []
        var names = JSONNameSet()
        /// The name whose value comes next.
        var name: JSONString?
    }

    /// The document, which nobody else refers to until the first string is found.
    let document: ZeroizingBuffer
    /// The bytes of ``document``, which lives as long as this value.
    let bytes: UnsafeMutableBufferPointer<UInt8>
    let limits: JSONParser
    var position = 0
    /// Where to pause.
    var pause = 0
    private var step = Step.value
    private var open: [Open] = []
    private var valueCount = 0
    /// The string that is being read: where it begins, and where what was unescaped of it ends.
    var stringStart = 0
    var stringEnd = 0

    /// What a value costs beside its bytes: memory for it, and for what it is put into.
    private static let valueWork = 64

    package init(_ document: consuming ZeroizingBuffer, limits: JSONParser) {
        var document = consume document
        // The memory is this value's own from here on, or a copy is made.
        bytes = document.withUnsafeMutableBytes { $0.assumingMemoryBound(to: UInt8.self) }
        self.document = document
        self.limits = limits
    }

    /// Goes on with the document.
    ///
    /// - Parameter work: After about how many bytes to pause.
    /// - Returns: The value of the whole document, or nil when there is more to do.
    public mutating func advance(work: Int) throws(JSONError) -> JSONValue? {
        guard bytes.count <= Int(UInt32.max) else { throw JSONError(.malformed, at: 0) }
        let (end, overflow) = position.addingReportingOverflow(work)
        pause = overflow ? .max : end
        while position < pause {
            switch step {
            case .string(let isName):
                guard let text = try continueString(isName: isName) else { return nil }
                isName ? try take(name: text) : take(.string(text))
                continue
            default: break
            }
            guard skipWhitespace() else { return nil }
            switch step {
            case .end(let value):
                guard position == bytes.count else { throw malformed() }
                return value
            case .firstElement where next == ASCII.closeBracket, .firstName where next == ASCII.closeBrace: close()
            case .value, .firstElement: try beginValue()
            case .name, .firstName: try beginName()
            case .colon:
                guard next == ASCII.colon else { throw malformed() }
                position += 1
                step = .value
            case .separator: try separate()
            case .string: break
            }
        }
        return nil
    }

    func malformed() -> JSONError { JSONError(.malformed, at: position) }

    /// The next byte without moving, or nil at the end.
    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Steps over white space. Returns false when it is time to pause.
    private mutating func skipWhitespace() -> Bool {
        let end = min(pause, bytes.count)
        while position < end {
            let byte = bytes[position]
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return true }
            position += 1
        }
        return position == bytes.count
    }

    private mutating func beginValue() throws(JSONError) {
        valueCount += 1
        guard valueCount <= limits.valueLimit else {
            throw JSONError(.tooManyValues, at: position, limit: limits.valueLimit)
        }
        pause = max(position + 1, pause - Self.valueWork)
        switch next {
        case ASCII.doubleQuote: beginString(isName: false)
        case ASCII.openBrace: try descend(Open(isObject: true), .firstName)
        case ASCII.openBracket: try descend(Open(isObject: false), .firstElement)
        case UInt8(ascii: "t"): take(try readLiteral("true", .bool(true)))
        case UInt8(ascii: "f"): take(try readLiteral("false", .bool(false)))
        case UInt8(ascii: "n"): take(try readLiteral("null", .null))
        default: take(try readNumber())
        }
    }

    private mutating func beginName() throws(JSONError) {
        guard next == ASCII.doubleQuote else { throw malformed() }
        beginString(isName: true)
    }

    private mutating func beginString(isName: Bool) {
        position += 1
        stringStart = position
        stringEnd = position
        step = .string(isName: isName)
    }

    private mutating func descend(_ container: Open, _ first: Step) throws(JSONError) {
        guard open.count < limits.depthLimit else { throw JSONError(.tooDeep, at: position) }
        position += 1
        open.append(container)
        step = first
    }

    private mutating func take(name: JSONString) throws(JSONError) {
        let last = open.count - 1
        // The name began at its quote.
        let start = stringStart - 1
        guard open[last].names.insert(name, after: open[last].members) else {
            throw JSONError(.duplicateMember, at: start, member: JSONPath.abbreviated(name.string))
        }
        guard open[last].members.count < limits.memberLimit else { throw JSONError(.tooManyMembers, at: start) }
        open[last].name = name
        step = .colon
    }

    /// Puts a complete value where it belongs.
    private mutating func take(_ value: JSONValue) {
        guard let last = open.indices.last else { return step = .end(value) }
        if let name = open[last].name.take() {
            open[last].members.append(JSONObject.Member(name: name, value: value))
        } else {
            open[last].elements.append(value)
        }
        step = .separator
    }

    private mutating func separate() throws(JSONError) {
        let isObject = open[open.count - 1].isObject
        switch next {
        case ASCII.comma:
            position += 1
            step = isObject ? .name : .value
        case isObject ? ASCII.closeBrace : ASCII.closeBracket: close()
        default: throw malformed()
        }
    }

    private mutating func close() {
        position += 1
        let container = open.removeLast()
        take(container.isObject ? .object(JSONObject(unique: container.members)) : .array(container.elements))
    }

    private mutating func readLiteral(_ text: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        let end = position + text.utf8CodeUnitCount
        guard end <= bytes.count else { throw malformed() }
        for offset in 0..<text.utf8CodeUnitCount where bytes[position + offset] != text.utf8Start[offset] {
            throw malformed()
        }
        position = end
        return value
    }
}

/// Tells whether a member's name came before: by comparing while there are few, by a hash that an attacker cannot
/// predict (the standard library's is seeded in each process) when there are many.
struct JSONNameSet {
    private var seen: Set<JSONString> = []

    mutating func insert(_ name: JSONString, after members: [JSONObject.Member]) -> Bool {
        if members.count < 12 { return !members.contains { $0.name == name } }
        if seen.isEmpty { seen = Set(members.map(\.name)) }
        return seen.insert(name).inserted
    }
}
