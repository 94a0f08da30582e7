/// Distinguishes domain names from addresses in the host of a request.
enum HostKind {
    /// Returns whether a host, with or without port, is a domain name other than `localhost` and names below it (RFC
    /// 6761 §6.3).
    ///
    /// A name with a number as its last label is an IPv4 address (WHATWG URL, "ends in a number checker").
    static func isDomainName(_ host: UnsafeBufferPointer<UInt8>) -> Bool {
        guard host.first != ASCII.openBracket else { return false }
        var name = host[..<(host.lastIndex(of: ASCII.colon) ?? host.endIndex)]
        if name.last == ASCII.dot { name = name.dropLast() }
        let last = name[(name.lastIndex(of: ASCII.dot).map { $0 + 1 } ?? name.startIndex)...]
        guard !last.isEmpty, !name.contains(ASCII.percent) else { return false }
        if ASCII.equalsIgnoringCase(UnsafeBufferPointer(rebasing: last), "localhost") { return false }
        return !isNumber(last)
    }

    private static func isNumber(_ label: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        if label.allSatisfy(ASCII.isDigit) { return true }
        guard label.first == ASCII.zero, label.dropFirst().first.map(ASCII.lowercased) == UInt8(ascii: "x") else {
            return false
        }
        return label.dropFirst(2).allSatisfy { ASCII.hexValue($0) != nil }
    }
}
