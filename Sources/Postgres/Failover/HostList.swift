internal import Glibc

/// The servers of a connection string. Their names are resolved before libpq needs them, because libpq would block.
///
/// Pure. It excludes hosts from libpq's environment or a service file. libpq resolves those itself.
struct HostList {
    typealias Options = [(keyword: String, value: String)]

    private struct Server {
        var host: String
        var port: String
    }

    private let options: Options
    private let servers: [Server]

    init(_ options: Options) {
        self.options = options
        func elements(_ keyword: String) -> [String] {
            guard let value = options.last(where: { $0.keyword == keyword })?.value else { return [] }
            return value.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
        let hosts = elements("host")
        let ports = elements("port")
        // With `hostaddr`, or a list that libpq will reject, there is nothing to resolve.
        if options.contains(where: { $0.keyword == "hostaddr" }) || ports.count > 1 && ports.count != hosts.count {
            servers = []
        } else {
            servers = hosts.enumerated().map { index, host in
                Server(host: host, port: ports.isEmpty ? "" : ports[ports.count == 1 ? 0 : index])
            }
        }
    }

    /// The names to resolve; empty when every server is an address or a socket.
    var names: [String] {
        servers.map(\.host).filter { Self.kind(of: $0) == .name }
    }

    /// Returns the number of servers, at first; 1 when libpq determines them itself.
    func serverCount(addresses: [String: [String]]) -> Int {
        servers.isEmpty ? 1 : resolve(addresses).count
    }

    /// Returns the options with one server for each address of a name, in order, rotated so that `serverIndex` is tried
    /// first.
    /// - Parameter isAlone: True to try no other server.
    /// - Returns: `nil` when no server is left.
    func options(addresses: [String: [String]], serverIndex: Int, isAlone: Bool = false) -> Options? {
        if servers.isEmpty { return options }
        let resolved = resolve(addresses)
        if resolved.isEmpty { return nil }
        let first = serverIndex % resolved.count
        let turned = isAlone ? [resolved[first]] : resolved[first...] + resolved[..<first]
        return options.filter { $0.keyword != "host" && $0.keyword != "port" } + [
            ("host", turned.map(\.server.host).joined(separator: ",")),
            ("hostaddr", turned.map(\.address).joined(separator: ",")),
            ("port", turned.map(\.server.port).joined(separator: ",")),
        ]
    }

    /// Returns true if both indices lead to the same of `count` servers. A count of 0 is unknown.
    static func isSame(_ index: Int, _ other: Int, among count: Int) -> Bool {
        count == 0 ? index == other : (index - other).isMultiple(of: count)
    }

    /// Returns one server for each address of a name.
    private func resolve(_ addresses: [String: [String]]) -> [(server: Server, address: String)] {
        var resolved: [(server: Server, address: String)] = []
        for server in servers {
            switch Self.kind(of: server.host) {
            case .name: resolved += (addresses[server.host] ?? []).map { (server, $0) }
            case .address: resolved.append((server, server.host))
            case .socket: resolved.append((server, ""))
            }
        }
        return resolved
    }

    private enum Kind {
        case name, address, socket
    }

    private static func kind(of host: String) -> Kind {
        if host.isEmpty || host.hasPrefix("/") || host.hasPrefix("@") { return .socket }
        var address = in6_addr()
        if inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1 { return .address }
        return .name
    }
}
