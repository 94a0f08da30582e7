/// The only supported application protocol, and the search for it in a client's list.
enum ApplicationProtocol {
    /// The protocol's name in ALPN (RFC 7301 section 6).
    static let http1: StaticString = "http/1.1"

    /// Returns the offset of the name in a protocol list (RFC 7301 section 3.1: each name after a byte with its
    /// length).
    static func offset(ofHTTP1In list: UnsafeBufferPointer<UInt8>) -> Int? {
        var index = 0
        while index < list.count {
            let start = index + 1
            let end = start + Int(list[index])
            guard end <= list.count else { return nil }
            if end - start == http1.utf8CodeUnitCount,
                list[start..<end].elementsEqual(UnsafeBufferPointer(start: http1.utf8Start, count: end - start))
            {
                return start
            }
            index = end
        }
        return nil
    }
}
