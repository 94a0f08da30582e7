public import HTTPCore

/// Limits and deadlines of a server's connections, the same on every loop.
public struct HTTPServerConfiguration: Sendable {
    /// The maximum number of connections. A few more receive a 503, and further ones are closed at once.
    public var maximumConnections = 10_000
    /// The maximum number of connections from one address, by default enough for an office. Further ones are closed at
    /// once.
    public var maximumConnectionsPerAddress = standardPerAddress
    /// True when a connection without room replaces the oldest idle one, of its own address if that is at its limit.
    /// For servers of one loop.
    public var replacesOldestIdle = false
    /// Addresses with connections of many clients. The limit of one address does not apply to them.
    public var trustedProxies = TrustedProxies()
    /// Addresses whose connections begin with a ``ProxyHeader``. No other connection has one.
    public var proxyProtocolSenders = TrustedProxies()
    /// From the accepted connection to the end of its ``ProxyHeader``, if it has one.
    public var proxyHeaderDeadline: Duration = .seconds(5)
    /// The maximum number of concurrent requests of one loop. A further one receives a 503.
    public var maximumConcurrentRequestsPerLoop = 1_024
    /// The memory of bodies and of unread output, with a quota for each sender. Beyond it, requests receive a 503.
    public var budgets = ServerBudgets()
    /// The maximum length of a body that is read from an unidentified sender, if the responder can identify senders.
    public var unidentifiedBodyLimit = 96 * 1_024
    /// From the accepted connection to the end of the TLS handshake. While the server stops, to its first request.
    public var handshakeDeadline: Duration = .seconds(10)
    /// From the first byte of a request to the end of its header block.
    public var headerDeadline: Duration = .seconds(10)
    /// Between two requests, and from the handshake to the first.
    public var idleDeadline: Duration = .seconds(75)
    /// The time in which a body has to make ``bodyProgress``. The first one has no requirement.
    public var bodyWindow: Duration = .seconds(10)
    /// The bytes of a body that have to arrive in each ``bodyWindow`` after the first.
    public var bodyProgress = 64 * 1_024
    /// The time for which a body beyond its sender's quota keeps borrowed memory when others wait for it. It then
    /// receives a 503.
    public var loanTime: Duration = .seconds(20)
    /// The time for which a body waits for borrowed memory until it receives a 503. Clients wait a minute for progress.
    public var loanWaitLimit: Duration = .seconds(45)
    /// The time in which a reply has to progress at ``minimumWriteRate``.
    public var writeDeadline: Duration = .seconds(30)
    /// The bytes of a reply that the client has to take in a second, measured over each ``writeDeadline``.
    public var minimumWriteRate = 2 * 1_024
    /// The time for which a closing connection waits for the client to read the reason.
    public var lingerDeadline: Duration = .seconds(2)
    /// The time for which a stopping server waits for first requests of new connections, and for requests of
    /// unidentified senders.
    public var drainGrace: Duration = .seconds(5)
    /// The seconds in `Retry-After` during overload.
    public var retryAfterOverload = 1

    public init() {}

    /// The bytes that a client has to take in each ``writeDeadline``.
    var writeProgress: Int {
        let (seconds, attoseconds) = writeDeadline.components
        return minimumWriteRate * Int(seconds) + minimumWriteRate * Int(attoseconds / 1_000_000_000_000_000) / 1_000
    }

    /// Returns the time of a body's next check: the end of a ``bodyWindow`` from now, or an earlier end of its loan.
    func bodyCheck(after now: ContinuousClock.Instant, end: ContinuousClock.Instant?) -> ContinuousClock.Instant {
        min(now + bodyWindow, end ?? now + bodyWindow)
    }

    /// The announced seconds for which a connection stays open (``idleDeadline``).
    var announcedKeepAlive: Int { Int(idleDeadline.components.seconds) }

    private static let standardPerAddress = 2_048

    /// The maximum number of a loop's requests from one network: an eighth.
    ///
    /// If the limit of connections from one address is above the default, it is at least half of the difference.
    var requestShare: Int {
        max(1, maximumConcurrentRequestsPerLoop / 8, (maximumConnectionsPerAddress - Self.standardPerAddress) / 2)
    }

    /// The number of connections above ``maximumConnections`` that receive a reply.
    var refusalAllowance: Int { max(8, maximumConnections / 20) }
}
