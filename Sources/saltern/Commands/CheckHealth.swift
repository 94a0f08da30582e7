import CommandLineKit
import EventLoop
import HTTPCore
import HTTPServer
import TransportSecurity

struct CheckHealth: Command {
    static let words = ["health"]
    static let summary = "check whether the server on this machine is alive"
    static let example = "saltern health --ready"
    static let help = """
          --ready          checks readiness (database and schema), not only liveness
        \(TLSDirectoryOption.help)

        For health checks of containers. Connects to SALTERN_LISTEN over TLS and accepts
        only the key of the certificate in the directory.
        """

    let asksReadiness: Bool
    let option: TLSDirectoryOption

    init(_ arguments: inout Arguments) throws(UsageError) {
        asksReadiness = arguments.flag("--ready")
        option = try TLSDirectoryOption(&arguments)
    }

    func run(_ console: Console) async throws {
        var settings = Settings(console.environment)
        let address = settings.listenAddress()
        let senders = settings.proxyProtocolSenders()
        try settings.finish()
        let path = asksReadiness ? "/v1/health/ready" : "/v1/health/live"
        let directory = try option.directory(console)
        let status: Int
        do {
            let pin = try directory.pins().active
            let probe = HealthProbe(address: address, pin: pin, proxyProtocolSenders: senders)
            status = try await onOwnThread { try probe.status(of: path) }
        } catch {
            throw CommandFailure("\(error)")
        }
        guard status == 200 else { throw CommandFailure("the server answers \(status)") }
        console.print("ok")
    }
}

/// One blocking request to the server on this machine, over TLS with a pinned key.
struct HealthProbe {
    let address: SocketAddress
    let pin: SPKIPin
    /// The addresses from which the server expects the PROXY protocol.
    var proxyProtocolSenders = TrustedProxies()

    /// The reason of a failed request.
    enum Failure: Error, CustomStringConvertible {
        case cannotConnect(ListenError, SocketAddress)
        case timedOut
        case noAnswer

        var description: String {
            switch self {
            case .cannotConnect(let error, let address): "cannot connect to \(address): \(error.reason)"
            case .timedOut: "no answer in time"
            case .noAnswer: "the answer is not HTTP"
            }
        }
    }

    /// In seconds.
    private static let timeout = 5

    /// Returns the status of `GET path`.
    func status(of path: String) throws -> Int {
        let descriptor = try connect()
        // The connection stores only the descriptor's number.
        defer { withExtendedLifetime(descriptor) {} }
        let context = try TLSClientContext(trust: .pins([pin]))
        let connection = try TLSConnection(context: context, descriptor: descriptor.rawValue, hostName: nil)
        guard case .finished = try connection.handshake() else { throw Failure.timedOut }
        // Not the address: a link-local one has a zone, which `Host` cannot contain (RFC 6874).
        let request = Array("GET \(path) HTTP/1.1\r\nHost: localhost:\(address.port)\r\nConnection: close\r\n\r\n".utf8)
        guard case .bytes(request.count) = try request.withUnsafeBytes({ try connection.write($0) }) else {
            throw Failure.timedOut
        }
        var reply = [UInt8](repeating: 0, count: 4_096)
        guard case .bytes(let count) = try reply.withUnsafeMutableBytes({ try connection.read(into: $0) }) else {
            throw Failure.timedOut
        }
        let line = String(decoding: reply[..<count].prefix { $0 != 13 }, as: UTF8.self)
        guard line.hasPrefix("HTTP/1.1 "), let status = Int(line.dropFirst(9).prefix(3)) else { throw Failure.noAnswer }
        return status
    }

    private func connect() throws(Failure) -> OwnedDescriptor {
        do throws(ListenError) {
            return try address.connectLocally(timeout: Self.timeout, proxyProtocolSenders: proxyProtocolSenders)
        } catch {
            throw .cannotConnect(error, address)
        }
    }
}
