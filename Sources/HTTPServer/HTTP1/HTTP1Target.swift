import HTTPCore

/// A request target (RFC 9112 §3.2): origin form, absolute form with `http` or `https`, or `*` for `OPTIONS`.
///
/// Every visible ASCII character but `#` may stand in it; what is not a valid escape is the router's to refuse.
struct HTTP1Target: Sendable {
    let path: Range<Int>
    let query: Range<Int>?
    /// Host and port of an absolute target.
    let authority: Range<Int>?

    init(_ bytes: UnsafeBufferPointer<UInt8>, range: Range<Int>, method: HTTPMethod) throws(HTTP1Error) {
        guard !range.isEmpty else { throw .syntax(.malformedTarget) }
        for index in range where bytes[index] &- 0x21 > 0x5D || bytes[index] == 0x23 { throw .syntax(.malformedTarget) }
        guard method != .connect else { throw .syntax(.unsupportedTargetForm) }
        let mark = bytes[range].firstIndex(of: ASCII.questionMark)
        query = mark.map { ($0 + 1)..<range.upperBound }
        let end = mark ?? range.upperBound
        if bytes[range.lowerBound] == ASCII.slash {
            path = range.lowerBound..<end
            authority = nil
            return
        }
        if range.count == 1, bytes[range.lowerBound] == 0x2A, method == .options {
            path = range
            authority = nil
            return
        }
        guard let schemeEnd = Self.endOfScheme(UnsafeBufferPointer(rebasing: bytes[range.lowerBound..<end])) else {
            throw .syntax(.unsupportedTargetForm)
        }
        let hostStart = range.lowerBound + schemeEnd
        let hostEnd = bytes[hostStart..<end].firstIndex(of: ASCII.slash) ?? end
        guard HTTP1Host.isValid(UnsafeBufferPointer(rebasing: bytes[hostStart..<hostEnd])) else {
            throw .syntax(.malformedTarget)
        }
        authority = hostStart..<hostEnd
        // An empty path is the same as "/" (RFC 9110 §4.2.3), and the byte before the host is a slash.
        path = hostEnd == end ? (hostStart - 1)..<hostStart : hostEnd..<end
    }

    /// The length of a leading `http://` or `https://`, or nil.
    private static func endOfScheme(_ target: UnsafeBufferPointer<UInt8>) -> Int? {
        func begins(with scheme: StaticString) -> Bool {
            let count = scheme.utf8CodeUnitCount
            return target.count >= count
                && ASCII.equalsIgnoringCase(UnsafeBufferPointer(rebasing: target[..<count]), scheme)
        }
        if begins(with: "https://") { return 8 }
        return begins(with: "http://") ? 7 : nil
    }
}
