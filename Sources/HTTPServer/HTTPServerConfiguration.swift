public import HTTPCore

/// Limits and deadlines of a server's connections, the same on every loop.
public struct HTTPServerConfiguration: Sendable {
    /// Connections in all. Above it a few more are let in to be told 503; beyond those they are closed at once.
    public var maximumConnections = 10_000
    /// Connections from one address, by default enough for an office behind one; a further one is closed at once.
    public var maximumConnectionsPerAddress = standardPerAddress
    /// Whether a connection for which there is no room takes the place of the oldest one that has asked for nothing, of
    /// its own address if that has all it may have. For servers of one loop.
    public var replacesOldestIdle = false
    /// Whose connections belong to many clients, so that the limit of one address does not hold for them.
    public var trustedProxies = TrustedProxies()
    /// From where every connection begins with a ``ProxyHeader``, and from nowhere else.
    public var proxyProtocolSenders = TrustedProxies()
    /// From the accepted connection to the end of its ``ProxyHeader``, where it has one.
    public var proxyHeaderDeadline: Duration = .seconds(5)
    /// Requests of one loop that are being answered at the same time; a further one is told 503.
    public var maximumConcurrentRequestsPerLoop = 1_024
    /// The memory of bodies and of unread output, each with a part that no single sender can exceed; what would go beyond
    /// it is told 503.
    public var budgets = ServerBudgets()
    /// The longest body that is read without asking the responder who sends it, when it can tell.
    public var unidentifiedBodyLimit = 96 * 1_024
    /// From the accepted connection to the end of the TLS handshake; when the server stops meanwhile, to its first request.
    public var handshakeDeadline: Duration = .seconds(10)
    /// From the first byte of a request to the end of its header block.
    public var headerDeadline: Duration = .seconds(10)
    /// Between two requests, and from the handshake to the first.
    public var idleDeadline: Duration = .seconds(75)
    /// How long a body may go on without ``bodyProgress``. Nothing is demanded in the first such time.
    public var bodyWindow: Duration = .seconds(10)
    /// The bytes of a body that have to arrive in each ``bodyWindow`` after the first.
    public var bodyProgress = 64 * 1_024
    /// How long a body that is beyond its sender's part of the memory has what is lent to it when others wait for that;
    /// then it is told 503.
    public var loanTime: Duration = .seconds(20)
    /// How long a body waits for memory that is lent to others until it is told 503. Clients wait for a minute for
    /// something to move.
    public var loanWaitLimit: Duration = .seconds(45)
    /// How long a reply may go on without moving at ``minimumWriteRate``.
    public var writeDeadline: Duration = .seconds(30)
    /// The bytes of a reply that the client has to take in a second, measured over each ``writeDeadline``.
    public var minimumWriteRate = 2 * 1_024
    /// How long a connection that is being closed waits for the client to hear why.
    public var lingerDeadline: Duration = .seconds(2)
    /// How long a server that stops waits for first requests of new connections, and for requests of senders that it does
    /// not know to become complete.
    public var drainGrace: Duration = .seconds(5)
    /// Seconds told in `Retry-After` when load is shed.
    public var retryAfterOverload = 1

    public init() {}

    /// The bytes that a client has to take in each ``writeDeadline``.
    var writeProgress: Int {
        let (seconds, attoseconds) = writeDeadline.components
        return minimumWriteRate * Int(seconds) + minimumWriteRate * Int(attoseconds / 1_000_000_000_000_000) / 1_000
    }

    /// The seconds that replies announce as the time for which a connection stays open (``idleDeadline``).
    var announcedKeepAlive: Int { Int(idleDeadline.components.seconds) }

    private static let standardPerAddress = 2_048

    /// How many of a loop's requests may be of one network: an eighth, or, where more connections of one address are
    /// let in than usual, half as many as those that are more.
    var requestShare: Int {
        max(1, maximumConcurrentRequestsPerLoop / 8, (maximumConnectionsPerAddress - Self.standardPerAddress) / 2)
    }

    /// How many connections above ``maximumConnections`` are let in to be refused politely.
    var refusalAllowance: Int { max(8, maximumConnections / 20) }
}
