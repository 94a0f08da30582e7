/// A request method (RFC 9110 §9): a case-sensitive token.
public struct HTTPMethod: Hashable, Sendable, CustomStringConvertible {
    /// The token of the request line.
    public let name: String

    private init(known name: String) {
        self.name = name
    }

    public static let get = HTTPMethod(known: "GET")
    public static let head = HTTPMethod(known: "HEAD")
    public static let post = HTTPMethod(known: "POST")
    public static let put = HTTPMethod(known: "PUT")
    public static let delete = HTTPMethod(known: "DELETE")
    public static let patch = HTTPMethod(known: "PATCH")
    public static let options = HTTPMethod(known: "OPTIONS")
    public static let connect = HTTPMethod(known: "CONNECT")
    public static let trace = HTTPMethod(known: "TRACE")

    /// Creates a method from a token, or nil for other bytes.
    public init?(token: UnsafeBufferPointer<UInt8>) {
        if token.count < 8 {
            var packed: UInt64 = 0
            for byte in token { packed = packed << 8 | UInt64(byte) }
            switch packed {
            case 0x47_4554: self = .get
            case 0x50_5554: self = .put
            case 0x4845_4144: self = .head
            case 0x504F_5354: self = .post
            case 0x50_4154_4348: self = .patch
            case 0x54_5241_4345: self = .trace
            case 0x4445_4C45_5445: self = .delete
            case 0x4F_5054_494F_4E53: self = .options
            case 0x43_4F4E_4E45_4354: self = .connect
            default:
                guard ASCII.isToken(token) else { return nil }
                name = String(decoding: token, as: UTF8.self)
            }
        } else {
            guard ASCII.isToken(token) else { return nil }
            name = String(decoding: token, as: UTF8.self)
        }
    }

    /// Creates a method from a token, or nil for other bytes.
    public init?(token: [UInt8]) {
        guard let method = token.withUnsafeBufferPointer({ HTTPMethod(token: $0) }) else { return nil }
        self = method
    }

    public var description: String { name }
}
