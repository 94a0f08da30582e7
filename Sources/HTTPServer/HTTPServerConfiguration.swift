public import HTTPCore

/// Limits and deadlines of a server's connections, the same on every loop.
public struct HTTPServerConfiguration: Sendable {
    /// Connections in all. Above it a few more are let in to be told 503; beyond those they are closed at once.
    public var maximumConnections = 10_000
    /// Connections from one address; a further one is closed at once.
    public var maximumConnectionsPerAddress = 256
    /// Whose connections belong to many clients, so that the limit of one address does not hold for them.
    public var trustedProxies = TrustedProxies()
    /// Requests of one loop that are being answered at the same time; a further one is told 503.
    public var maximumConcurrentRequestsPerLoop = 1_024
    /// Bytes of the bodies that one loop holds, while they arrive and while they are answered; a body that would go
    /// beyond it is told 503. Bodies of up to 64 KiB are not counted: connections are limited by themselves.
    public var maximumBodyBytesPerLoop = 128 * 1_048_576
    /// From the accepted connection to the end of the TLS handshake.
    public var handshakeDeadline: Duration = .seconds(10)
    /// From the first byte of a request to the end of its header block.
    public var headerDeadline: Duration = .seconds(10)
    /// Between two requests, and from the handshake to the first.
    public var idleDeadline: Duration = .seconds(75)
    /// How long a reply may wait for a client that does not read; 64 KiB taken begin it anew.
    public var writeDeadline: Duration = .seconds(30)
    /// How long a connection that is being closed waits for the client to hear why.
    public var lingerDeadline: Duration = .seconds(2)
    /// Seconds told in `Retry-After` when load is shed.
    public var retryAfterOverload = 1

    public init() {}

    /// How many connections above ``maximumConnections`` are let in to be refused politely.
    var refusalAllowance: Int { max(8, maximumConnections / 20) }
}
