/// A strict parser for JSON documents (RFC 8259).
///
/// It rejects input that the RFC leaves open, or that attackers use:
///
/// - duplicate member names, also if one is written with escapes
/// - bytes that are not UTF-8, a byte order mark, lone surrogates
/// - deep nesting, too many values, long names and numbers
/// - bytes after the document
///
/// Time is linear in the size of the document, also for hostile ones.
public struct JSONParser: Sendable {
    /// The maximum nesting of arrays and objects.
    public var depthLimit: Int
    /// The maximum number of members in one object.
    public var memberLimit: Int
    /// The maximum number of values in the document: objects, arrays, strings, numbers and literals, at any depth.
    public var valueLimit: Int
    /// The maximum number of bytes of one number.
    public var numberLengthLimit: Int

    /// Enough for all routes without lists.
    public static let standardValueLimit = 256
    /// The maximum number of bytes of a member's name, longer than any supported name.
    public static let nameLengthLimit = 1_024

    /// Creates a parser with limits. `depthLimit` is in 1...512, because the release of a tree is recursive.
    public init(
        depthLimit: Int = 32, memberLimit: Int = 1024, valueLimit: Int = .max, numberLengthLimit: Int = 64
    ) {
        precondition((1...512).contains(depthLimit), "the depth limit is in 1...512")
        self.depthLimit = depthLimit
        self.memberLimit = memberLimit
        self.valueLimit = valueLimit
        self.numberLengthLimit = numberLengthLimit
    }

    /// Parses a whole document. Strings of the result are slices of `document`.
    public func parse(_ document: consuming ZeroizingBuffer) throws(JSONError) -> JSONValue {
        var parsing = JSONParsing(consume document, limits: self)
        while true {
            if let value = try parsing.advance(work: .max) { return value }
        }
    }

    /// Parses a copy of a whole document.
    public func parse(_ document: [UInt8]) throws(JSONError) -> JSONValue {
        try parse(ZeroizingBuffer(document))
    }

    /// Parses a whole document, and suspends after each slice of bytes for other work.
    public func parse(_ document: consuming ZeroizingBuffer, pace: Pace) async throws(JSONError) -> JSONValue {
        var parsing = JSONParsing(consume document, limits: self)
        while true {
            if let value = try parsing.advance(work: Pace.slice) { return value }
            await pace.giveWay()
        }
    }
}

/// The state of parsing one document. It can pause and continue at any byte.
///
/// It writes in place: the text of an escape, which is never longer, replaces the escape. The strings of the result are
/// slices of the document, so a document is never in memory twice.
public struct JSONParsing: ~Copyable {
    /// The tokens that may follow.
    enum Step {
        case value
        /// A value, or the end of an array without elements.
        case firstElement
        case name
        /// A name, or the end of an object without members.
        case firstName
        /// The rest of a string, which is a name or a value.
        case string(isName: Bool)
        case colon
        /// A comma, or the end of the innermost array or object.
        case separator
        /// White space after the document.
        case end(JSONValue)
    }

    /// An unfinished array or object.
    struct Open {
        let isObject: Bool
        var elements: [JSONValue] = []
        var members: [JSONObject.Member] = []
        var names = JSONNameSet()
        /// The name of the value that follows.
        var name: JSONString?
    }

    /// The document. No other value refers to it until the first string is found.
    let document: ZeroizingBuffer
    /// The bytes of ``document``, which lives as long as this value.
    let bytes: UnsafeMutableBufferPointer<UInt8>
    let limits: JSONParser
    var position = 0
    /// The position of the next pause.
    var pause = 0
    private var step = Step.value
    private var open: [Open] = []
    private var valueCount = 0
    /// The current string: its start, and the end of its unescaped text.
    private var stringStart = 0
    private var stringEnd = 0

    /// The work of a value besides its bytes: memory for it and for its container.
    private static let valueWork = 64

    package init(_ document: consuming ZeroizingBuffer, limits: JSONParser) {
        var document = consume document
        // From here on the memory belongs to this value alone. A shared document is copied.
        bytes = document.withUnsafeMutableBytes { $0.assumingMemoryBound(to: UInt8.self) }
        self.document = document
        self.limits = limits
    }

    /// Continues with the document.
    ///
    /// - Parameter work: The approximate number of bytes before a pause.
    /// - Returns: The value of the whole document, or nil at a pause.
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

    /// The next byte, or nil at the end. Does not move.
    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Skips white space. Returns false at a pause.
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

    /// Adds a complete value to its container.
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

/// Detects duplicate names: by comparison while there are few, otherwise by a hash. Attackers cannot predict the
/// standard library's hash, which is seeded in each process.
struct JSONNameSet {
    private var seen: Set<JSONString> = []

    mutating func insert(_ name: JSONString, after members: [JSONObject.Member]) -> Bool {
        if members.count < 12 { return !members.contains { $0.name == name } }
        if seen.isEmpty { seen = Set(members.map(\.name)) }
        return seen.insert(name).inserted
    }
}

extension JSONParsing {
    /// Reads a number. An integer in any form (`600000.0`, `6e5`) becomes an exact integer.
    ///
    /// Without fraction and exponent, a number is an integer or out of range. `-0` keeps its sign as a floating-point
    /// number.
    private mutating func readNumber() throws(JSONError) -> JSONValue {
        let start = position
        if next == ASCII.minus { position += 1 }
        let firstDigit = position
        try skipIntegerDigits(of: start)
        var isInteger = true
        if next == ASCII.dot {
            isInteger = false
            position += 1
            try skipDigits(of: start)
        }
        if let byte = next, byte | 0x20 == UInt8(ascii: "e") {
            isInteger = false
            position += 1
            if let sign = next, sign == ASCII.plus || sign == ASCII.minus { position += 1 }
            try skipDigits(of: start)
        }
        guard position - start <= limits.numberLengthLimit else { throw JSONError(.numberOutOfRange, at: start) }
        if let value = exactInteger(bytes[start..<position]) { return .integer(value) }
        if isInteger, bytes[firstDigit] != ASCII.zero { throw JSONError(.numberOutOfRange, at: start) }
        let text = String(decoding: UnsafeMutableBufferPointer(rebasing: bytes[start..<position]), as: UTF8.self)
        guard let value = Double(text), value.isFinite else { throw JSONError(.numberOutOfRange, at: start) }
        return .double(value)
    }

    /// Skips the integer part, which has no leading zeros.
    private mutating func skipIntegerDigits(of number: Int) throws(JSONError) {
        let start = position
        try skipDigits(of: number)
        if bytes[start] == ASCII.zero, position - start > 1 {
            position = start + 1
            throw malformed()
        }
    }

    /// Skips digits. Throws before the end of a number that is too long.
    private mutating func skipDigits(of number: Int) throws(JSONError) {
        guard let byte = next, ASCII.isDigit(byte) else { throw malformed() }
        repeat {
            position += 1
            guard position - number <= limits.numberLengthLimit else { throw JSONError(.numberOutOfRange, at: number) }
        } while next.map(ASCII.isDigit) ?? false
    }

    /// Returns the exact integer value of a number, or nil for a fraction, `-0`, or an integer that does not fit.
    private func exactInteger(_ number: Slice<UnsafeMutableBufferPointer<UInt8>>) -> Int64? {
        let isNegative = number.first == ASCII.minus
        let mantissa = number.prefix { $0 | 0x20 != UInt8(ascii: "e") }
        // The value is `significant`, which does not end with a zero, times ten to the power of `exponent`.
        var significant: Int64 = 0
        var exponent = Self.exponent(number[mantissa.endIndex...].dropFirst())
        var zeros = 0
        var isFraction = false
        for byte in mantissa {
            if byte == ASCII.dot { isFraction = true }
            guard ASCII.isDigit(byte) else { continue }
            if isFraction { exponent -= 1 }
            zeros += 1
            if byte == ASCII.zero { continue }
            let digit = Int64(byte - ASCII.zero)
            guard let shifted = Self.shifted(significant, by: zeros) else { return nil }
            // Counting downwards reaches Int64.min, which has no positive counterpart.
            let (sum, overflow) =
                isNegative
                ? shifted.subtractingReportingOverflow(digit) : shifted.addingReportingOverflow(digit)
            guard !overflow else { return nil }
            significant = sum
            zeros = 0
        }
        if significant == 0 { return isNegative ? nil : 0 }
        return exponent + zeros < 0 ? nil : Self.shifted(significant, by: exponent + zeros)
    }

    /// Reads an exponent without its letter. Exponents beyond all integers have the same effect, so they are capped.
    private static func exponent(_ text: Slice<UnsafeMutableBufferPointer<UInt8>>) -> Int {
        let value = text.filter(ASCII.isDigit).reduce(0) { min($0 * 10 + Int($1 - ASCII.zero), 10_000) }
        return text.first == ASCII.minus ? -value : value
    }

    /// Returns a value times a power of ten, or nil if it does not fit.
    private static func shifted(_ value: Int64, by zeros: Int) -> Int64? {
        if value == 0 { return 0 }
        var value = value
        for _ in 0..<zeros {
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            guard !overflow else { return nil }
            value = product
        }
        return value
    }
}

extension JSONParsing {
    /// Continues to read a string after its opening quote.
    ///
    /// - Returns: The string, with `position` after its closing quote, or nil at a pause.
    private mutating func continueString(isName: Bool) throws(JSONError) -> JSONString? {
        while let byte = next {
            guard position < pause else { return nil }
            if isName { try refuseLongName() }
            switch byte {
            case ASCII.doubleQuote:
                position += 1
                return JSONString(storage: document, range: stringStart..<stringEnd)
            case ASCII.backslash: try escape()
            case 0x80...:
                let length = UTF8Validation.lengthOfSequence(in: UnsafeBufferPointer(bytes), at: position)
                guard length > 0 else { throw JSONError(.notUTF8, at: position) }
                keep(length)
            case 0x20...:
                let end = min(bytes.count, pause, isName ? position + JSONParser.nameLengthLimit + 1 : .max)
                let part = UnsafeBufferPointer(rebasing: UnsafeBufferPointer(bytes)[..<end])
                keep(TextScanner.endOfPlainText(in: part, from: position) - position)
            default: throw malformed()
            }
        }
        // The error does not depend on the piece in which the name grew too long.
        if isName { try refuseLongName() }
        throw malformed()
    }

    private func refuseLongName() throws(JSONError) {
        guard stringEnd - stringStart > JSONParser.nameLengthLimit else { return }
        throw JSONError(.nameTooLong, at: stringStart - 1, limit: JSONParser.nameLengthLimit)
    }

    /// Keeps bytes unchanged, and moves them to the end of the unescaped text.
    private mutating func keep(_ count: Int) {
        if stringEnd != position, let base = bytes.baseAddress {
            (base + stringEnd).update(from: base + position, count: count)
        }
        position += count
        stringEnd += count
    }

    /// Reads one escape, with `position` at its backslash. Its text has fewer bytes.
    private mutating func escape() throws(JSONError) {
        let start = position
        position += 1
        guard let byte = next else { throw malformed() }
        position += 1
        switch byte {
        case ASCII.doubleQuote, ASCII.backslash, ASCII.slash: put(byte)
        case UInt8(ascii: "b"): put(0x08)
        case UInt8(ascii: "f"): put(0x0C)
        case UInt8(ascii: "n"): put(0x0A)
        case UInt8(ascii: "r"): put(0x0D)
        case UInt8(ascii: "t"): put(0x09)
        case UInt8(ascii: "u"):
            let scalar = try unicodeEscape(from: start)
            guard let base = bytes.baseAddress else { return }
            stringEnd += UTF8Validation.write(scalar, to: base + stringEnd)
        default:
            position -= 1
            throw malformed()
        }
    }

    private mutating func put(_ byte: UInt8) {
        bytes[stringEnd] = byte
        stringEnd += 1
    }

    private mutating func unicodeEscape(from start: Int) throws(JSONError) -> UInt32 {
        let scalar = try fourHexDigits()
        if (0xDC00..<0xE000).contains(scalar) { throw JSONError(.loneSurrogate, at: start) }
        guard (0xD800..<0xDC00).contains(scalar) else { return scalar }
        guard next == ASCII.backslash, position + 1 < bytes.count, bytes[position + 1] == UInt8(ascii: "u") else {
            throw JSONError(.loneSurrogate, at: start)
        }
        position += 2
        let low = try fourHexDigits()
        guard (0xDC00..<0xE000).contains(low) else { throw JSONError(.loneSurrogate, at: start) }
        return 0x10000 + (scalar - 0xD800) << 10 + (low - 0xDC00)
    }

    private mutating func fourHexDigits() throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = next, let digit = ASCII.hexValue(byte) else { throw malformed() }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        return value
    }
}
