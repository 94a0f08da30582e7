internal import HTTPCore
internal import Synchronization

/// Counts the connections of all loops, in all and by address. IPv6 clients are counted by their /64, which one of
/// them has for itself. A trusted proxy's are counted in all only: they belong to many clients.
final class ConnectionQuota: Sendable {
    /// What becomes of a new connection.
    enum Decision {
        case serve
        /// Over the limit, but few enough to be told so.
        case refusePolitely
        /// Close it at once, for there are too many in all; it is not counted.
        case drop
        /// Close it at once, for there are too many of its address; it is not counted.
        case dropOfAddress
    }

    private struct Counts {
        var total = 0
        var byAddress: [UInt64: Int] = [:]
    }

    private let counts = Mutex(Counts())
    let maximum: Int
    private let refusalAllowance: Int
    private let maximumPerAddress: Int
    private let proxies: TrustedProxies
    private let proxyProtocolSenders: TrustedProxies

    init(_ configuration: HTTPServerConfiguration) {
        maximum = configuration.maximumConnections
        refusalAllowance = configuration.refusalAllowance
        maximumPerAddress = configuration.maximumConnectionsPerAddress
        proxies = configuration.trustedProxies
        proxyProtocolSenders = configuration.proxyProtocolSenders
    }

    /// Connections that are open now.
    var total: Int { counts.withLock { $0.total } }

    private func isProxy(_ client: ClientAddress) -> Bool {
        proxies.contains(client.ip) || proxyProtocolSenders.contains(client.ip)
    }

    /// Of whose connections one has to go before another one from there can be served.
    enum Shortage {
        case none
        case ofAddress
        case ofAll
    }

    /// What a new connection would lack.
    func shortage(for client: ClientAddress) -> Shortage {
        let isProxy = isProxy(client)
        return counts.withLock { counts in
            if !isProxy, counts.byAddress[client.ip.network, default: 0] >= maximumPerAddress { return .ofAddress }
            return counts.total >= maximum ? .ofAll : .none
        }
    }

    /// Counts a new connection, unless it is dropped.
    func open(from client: ClientAddress) -> Decision {
        let isProxy = isProxy(client)
        return counts.withLock { counts in
            guard counts.total < maximum + refusalAllowance else { return .drop }
            if !isProxy {
                guard counts.byAddress[client.ip.network, default: 0] < maximumPerAddress else { return .dropOfAddress }
                counts.byAddress[client.ip.network, default: 0] += 1
            }
            counts.total += 1
            return counts.total <= maximum ? .serve : .refusePolitely
        }
    }

    /// Forgets a connection that was counted.
    func close(from client: ClientAddress) {
        let isProxy = isProxy(client)
        counts.withLock { counts in
            counts.total -= 1
            if isProxy { return }
            let left = counts.byAddress[client.ip.network, default: 1] - 1
            counts.byAddress[client.ip.network] = left > 0 ? left : nil
        }
    }
}
