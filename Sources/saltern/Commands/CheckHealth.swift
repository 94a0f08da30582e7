import CommandLineKit
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
