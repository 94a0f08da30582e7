/// Where a request stands in a trace that began elsewhere: what its `traceparent` field says (W3C Trace Context §3.2).
///
/// It is for the log alone. Whoever sends a request can claim any trace, so nothing else may depend on it.
public struct TraceParent: Hashable, Sendable {
    private let traceHigh: UInt64
    private let traceLow: UInt64
    private let span: UInt64

    /// How many digits the identifier of a trace has.
    public static let traceIDCharacterCount = 32
    /// How many digits the identifier of a span has.
    public static let spanIDCharacterCount = 16

    /// What `version-traceid-parentid-flags` takes.
    private static let characterCount = 55

    /// Reads the field; nil when there is none, or when it is not valid, which is the same (§3.2.2.3, §4.3).
    public init?(_ fields: RequestFields) {
        guard let valid = fields.withValue(named: "traceparent", { TraceParent($0) }) ?? nil else { return nil }
        self = valid
    }

    /// Reads a value of version 00, or what a later version has in common with it (§3.2.4): more may follow there, behind
    /// a further hyphen. Several field lines are joined by a comma, and that is not valid.
    private init?(_ text: UnsafeBufferPointer<UInt8>) {
        guard text.count >= Self.characterCount, [2, 35, 52].allSatisfy({ text[$0] == ASCII.minus }),
            let version = Self.number(text[0..<2]), version != 0xFF,
            let high = Self.number(text[3..<19]), let low = Self.number(text[19..<35]), high | low != 0,
            let span = Self.number(text[36..<52]), span != 0,
            Self.number(text[53..<55]) != nil,
            text.count == Self.characterCount || version > 0 && text[Self.characterCount] == ASCII.minus
        else { return nil }
        traceHigh = high
        traceLow = low
        self.span = span
    }

    /// The value of at most 16 hexadecimal digits in lower case (`HEXDIGLC`); nil when one is not.
    private static func number(_ digits: Slice<UnsafeBufferPointer<UInt8>>) -> UInt64? {
        var value: UInt64 = 0
        for byte in digits {
            guard ASCII.lowercased(byte) == byte, let digit = ASCII.hexValue(byte) else { return nil }
            value = value << 4 | UInt64(digit)
        }
        return value
    }

    /// Writes the digits of the trace's identifier to the start of `digits`, which must have room for them.
    /// - Returns: ``traceIDCharacterCount``.
    public func writeTraceID(to digits: UnsafeMutableBufferPointer<UInt8>) -> Int {
        ASCII.writeHexadecimal(traceHigh, to: digits, at: 0)
        ASCII.writeHexadecimal(traceLow, to: digits, at: 16)
        return Self.traceIDCharacterCount
    }

    /// Writes the digits of the identifier of the span that the request was sent in to the start of `digits`.
    /// - Returns: ``spanIDCharacterCount``.
    public func writeSpanID(to digits: UnsafeMutableBufferPointer<UInt8>) -> Int {
        ASCII.writeHexadecimal(span, to: digits, at: 0)
        return Self.spanIDCharacterCount
    }
}
