/// Where a request came from: the peer of the connection.
public struct ClientAddress: Hashable, Sendable, CustomStringConvertible {
    /// The numeric address, for example `127.0.0.1` or `2001:db8::1`, without brackets or port.
    public let address: String
    public let port: UInt16

    public init(address: String, port: UInt16) {
        self.address = address
        self.port = port
    }

    public var description: String {
        address.utf8.contains(ASCII.colon) ? "[\(address)]:\(port)" : "\(address):\(port)"
    }
}
