public import Synchronization

/// What a server has counted since its start, for metrics. Every loop adds to it.
public final class HTTPServerStatistics: Sendable {
    /// Connections taken on.
    public let acceptedConnections = Atomic<Int>(0)
    /// Connections closed at once because a limit was reached.
    public let droppedConnections = Atomic<Int>(0)
    /// Those of them that were too many of one address.
    public let droppedOfAddress = Atomic<Int>(0)
    /// Connections of proxies that were closed because no valid header named the client.
    public let refusedProxyHeaders = Atomic<Int>(0)
    /// TLS handshakes that ended without a connection.
    public let failedHandshakes = Atomic<Int>(0)
    /// TLS handshakes completed.
    public let completedHandshakes = Atomic<Int>(0)

    init() {}

    func noteDrop(ofAddress isOfAddress: Bool) {
        droppedConnections.add(1, ordering: .relaxed)
        if isOfAddress { droppedOfAddress.add(1, ordering: .relaxed) }
    }
}
