internal import HTTPCore
internal import Synchronization

/// Counts the connections of all loops, in total and by address.
///
/// IPv6 clients are counted by their /64, which belongs to one client. Connections of a trusted proxy count in the
/// total only, because they belong to many clients.
final class ConnectionQuota: Sendable {
    /// The decision about a new connection.
    enum Decision {
        case serve
        /// Over the limit, but within the allowance for a reply.
        case refusePolitely
        /// Close at once, because of the total limit. The connection is not counted.
        case drop
        /// Close at once, because of the limit of its address. The connection is not counted.
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

    /// The number of open connections.
    var total: Int { counts.withLock { $0.total } }

    private func isProxy(_ client: ClientAddress) -> Bool {
        proxies.contains(client.ip) || proxyProtocolSenders.contains(client.ip)
    }

    /// The limit that requires the end of another connection first.
    enum Shortage {
        case none
        case ofAddress
        case ofAll
    }

    /// Returns the limit that a new connection would exceed.
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

    /// Removes a connection from the counts.
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
