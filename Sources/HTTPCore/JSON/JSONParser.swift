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
