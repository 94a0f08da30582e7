import HTTPServer
import Postgres
import SalternServer
import TransportSecurity

extension Settings {
    /// Where the server listens: `SALTERN_LISTEN`.
    mutating func listenAddress() -> SocketAddress {
        address("SALTERN_LISTEN") ?? SocketAddress(host: "127.0.0.1", port: 8_443)
    }

    mutating func address(_ name: String) -> SocketAddress? {
        guard let text = text(name) else { return nil }
        if let address = SocketAddress(text) { return address }
        note("\(name) must be HOST:PORT, for example 127.0.0.1:8443 or [::]:8443")
        return nil
    }
}
