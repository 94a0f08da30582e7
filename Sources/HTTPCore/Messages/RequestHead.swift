/// The framing of a request's body (RFC 9112 §6).
public enum BodyFraming: Hashable, Sendable {
    /// No body, which includes `Content-Length: 0`.
    case none
    /// The exact number of bytes, at least 1.
    case length(Int)
    /// `Transfer-Encoding: chunked`, with an unknown length.
    case chunked
}

/// The head of a request: request line and fields, checked, not yet routed.
///
/// Path and query are unchanged. The router decodes the path once, segment by segment.
public struct RequestHead: Sendable {
    public var method: HTTPMethod
    public let fields: RequestFields
    /// 1 for HTTP/1.1, 0 for HTTP/1.0.
    public let versionMinor: Int
    /// True when the client permits the connection to stay open after the reply (RFC 9112 §9.3).
    public let wantsKeepAlive: Bool
    public let framing: BodyFraming
    /// True when the client waits for `100 Continue` before it sends its body.
    public let expectsContinue: Bool

    private let pathRange: Range<Int>
    private let queryRange: Range<Int>?
    private let hostRange: Range<Int>?

    /// Takes the results of a parser. The ranges must be within the storage of `fields`.
    package init(
        method: HTTPMethod, fields: RequestFields, path: Range<Int>, query: Range<Int>?, host: Range<Int>?,
        versionMinor: Int, wantsKeepAlive: Bool, framing: BodyFraming, expectsContinue: Bool
    ) {
        self.method = method
        self.fields = fields
        pathRange = path
        queryRange = query
        hostRange = host
        self.versionMinor = versionMinor
        self.wantsKeepAlive = wantsKeepAlive
        self.framing = framing
        self.expectsContinue = expectsContinue
    }

    /// Creates a head without a connection, for requests in the same process.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - target: Path and query, percent-encoded, for example `/v1/changes?limit=10`.
    ///   - fields: Names and values of the client.
    ///   - framing: The framing of the body.
    public init(
        method: HTTPMethod, target: String, fields: [(name: String, value: String)] = [], framing: BodyFraming = .none
    ) {
        var storage = ZeroizingBuffer(target.utf8)
        let mark = storage.firstIndex(of: ASCII.questionMark)
        let targetEnd = storage.count
        var entries: [RequestFields.Entry] = []
        var host: Range<Int>?
        for (name, value) in fields {
            let nameStart = storage.count
            storage.append(contentsOf: name.utf8)
            let valueStart = storage.count
            storage.append(contentsOf: value.utf8)
            entries.append(RequestFields.Entry(name: nameStart..<valueStart, value: valueStart..<storage.count))
            if name.lowercased() == "host" { host = valueStart..<storage.count }
        }
        self.init(
            method: method, fields: RequestFields(storage: storage, entries: entries), path: 0..<(mark ?? targetEnd),
            query: mark.map { ($0 + 1)..<targetEnd },
            host: host, versionMinor: 1, wantsKeepAlive: true, framing: framing,
            expectsContinue: false)
    }

    /// The path as sent, percent-encoded, beginning with `/` (or `*` for `OPTIONS *`).
    public var path: String { String(decoding: pathBytes, as: UTF8.self) }

    /// The bytes of ``path``, without a copy.
    public var pathBytes: Slice<ZeroizingBuffer> { fields.storage[pathRange] }

    /// True when the request's host is a domain name: neither an address nor `localhost`. False without a host.
    public var hasDomainName: Bool {
        guard let hostRange else { return false }
        return fields.storage[hostRange].withContiguousStorageIfAvailable { HostKind.isDomainName($0) } ?? false
    }

    /// The text after the first `?`, percent-encoded, or nil without one.
    public var query: String? { queryBytes.map { String(decoding: $0, as: UTF8.self) } }

    /// A copy of the bytes of ``query``, which must not have secrets.
    public var queryBytes: ArraySlice<UInt8>? { queryRange.map { Array(fields.storage[$0])[...] } }
}

extension RequestHead: CustomStringConvertible, CustomReflectable {
    /// The method. Paths, queries and fields can have secrets.
    public var description: String { "RequestHead(\(method))" }
    public var customMirror: Mirror { Mirror(self, children: ["method": method]) }
}

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
