import SalternTesting
import TransportSecurity

/// A fresh key and certificate for localhost, and the contexts of both sides.
struct TestIdentity {
    let serverContext: TLSServerContext
    let pins: CertificateDirectory.Pins

    init() throws {
        let directory = try TemporaryDirectory()
        let certificates = CertificateDirectory(path: directory.path + "/tls")
        pins = try certificates.create(hosts: [Host("localhost")])
        serverContext = try TLSServerContext(identity: certificates.identity())
    }

    func clientContext() throws -> TLSClientContext { try TLSClientContext(trust: .pins([pins.active])) }
}
