/// The one application protocol that is spoken, and the search for it in a client's list.
enum ApplicationProtocol {
    /// RFC 7301 section 6.
    static let http1: StaticString = "http/1.1"

    /// Where in a protocol list (RFC 7301 section 3.1: each name after a byte with its length) the name starts.
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
