/// The position of a request in an external trace, from its `traceparent` field (W3C Trace Context §3.2).
///
/// Use it for the log only. A client can claim any trace, so no decision may depend on it.
public struct TraceParent: Hashable, Sendable {
    private let traceHigh: UInt64
    private let traceLow: UInt64
    private let span: UInt64

    /// The number of digits of a trace's identifier.
    public static let traceIDCharacterCount = 32
    /// The number of digits of a span's identifier.
    public static let spanIDCharacterCount = 16

    /// The length of `version-traceid-parentid-flags`.
    private static let characterCount = 55

    /// Reads the field. Returns nil for a missing or an invalid one, which are equal (§3.2.2.3, §4.3).
    public init?(_ fields: RequestFields) {
        guard let valid = fields.withValue(named: "traceparent", { TraceParent($0) }) ?? nil else { return nil }
        self = valid
    }

    /// Reads a value of version 00, or the common part of a later version (§3.2.4), which may continue after a further
    /// hyphen. Several field lines are joined by a comma, which is not valid.
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

    /// Returns the value of at most 16 hexadecimal digits in lower case (`HEXDIGLC`), or nil for other text.
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

    /// Writes the digits of the client's span to the start of `digits`, which must have room for them.
    /// - Returns: ``spanIDCharacterCount``.
    public func writeSpanID(to digits: UnsafeMutableBufferPointer<UInt8>) -> Int {
        ASCII.writeHexadecimal(span, to: digits, at: 0)
        return Self.spanIDCharacterCount
    }
}
