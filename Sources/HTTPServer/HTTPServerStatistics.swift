public import Synchronization

/// The counters of a server since its start, for metrics. All loops add to them.
public final class HTTPServerStatistics: Sendable {
    /// Connections accepted.
    public let acceptedConnections = Atomic<Int>(0)
    /// Connections closed at once because of a limit.
    public let droppedConnections = Atomic<Int>(0)
    /// Those of them that exceeded the limit of an address.
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
