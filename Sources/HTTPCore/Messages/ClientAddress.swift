/// The origin of a request: the peer of the connection, or the client that a trusted proxy names.
public struct ClientAddress: Hashable, Sendable, CustomStringConvertible {
    /// The numeric address, for example `127.0.0.1` or `2001:db8::1`, without brackets or port.
    public let address: String
    /// The address as a number. ``IPAddress/unspecified`` when the text is no address.
    public let ip: IPAddress
    public let port: UInt16

    public init(address: String, port: UInt16) {
        self.address = address
        ip = IPAddress(address) ?? .unspecified
        self.port = port
    }

    public var description: String {
        address.utf8.contains(ASCII.colon) ? "[\(address)]:\(port)" : "\(address):\(port)"
    }
}
