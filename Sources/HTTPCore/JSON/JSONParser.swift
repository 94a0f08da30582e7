/// A strict parser for JSON documents (RFC 8259).
///
/// It refuses what the RFC leaves open or what attackers use: duplicate member names (also when one is written with
/// escapes), bytes that are not UTF-8, a byte order mark, lone surrogates, deep nesting, more values than anybody asked
/// for, names and numbers of any length, and anything after the document. Time is linear in the size of the document,
/// also for hostile ones.
public struct JSONParser: Sendable {
    /// How deeply arrays and objects may be nested.
    public var depthLimit: Int
    /// How many members one object may have.
    public var memberLimit: Int
    /// How many values the document may have: objects, arrays, strings, numbers and literals, at any depth.
    public var valueLimit: Int
    /// How many bytes one number may have.
    public var numberLengthLimit: Int

    /// Enough for every route but those that take lists.
    public static let standardValueLimit = 256
    /// How many bytes the name of a member may have: more than any name that anybody knows.
    public static let nameLengthLimit = 1_024

    /// Creates a parser with limits; `depthLimit` is in 1...512, because trees are freed by way of the stack.
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

    /// Parses a whole document, which is copied.
    public func parse(_ document: [UInt8]) throws(JSONError) -> JSONValue {
        try parse(ZeroizingBuffer(document))
    }

    /// Parses a whole document, and lets others have their turn after every so many bytes.
    public func parse(_ document: consuming ZeroizingBuffer, pace: Pace) async throws(JSONError) -> JSONValue {
        var parsing = JSONParsing(consume document, limits: self)
        while true {
            if let value = try parsing.advance(work: Pace.slice) { return value }
            await pace.giveWay()
        }
    }
}
