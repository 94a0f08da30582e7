internal import COpenSSL
internal import Cryptography

/// The settings that all connections of a server share: identity, versions, suites, ticket keys.
///
/// One context serves all event loops, so a session ticket of one is valid on the others. To reload the certificate,
/// create a new context for new connections. The old one lives as long as its connections.
public final class TLSServerContext: Sendable {
    /// The served chain and key.
    public let identity: TLSIdentity

    let context: TLSContext

    /// Creates a context.
    /// - Parameters:
    ///   - identity: Chain and key, self-signed or from a public authority.
    ///   - minimumVersion: TLS 1.3 unless old clients have to be served.
    /// - Throws: ``CertificateError`` when OpenSSL rejects chain or key.
    public init(identity: TLSIdentity, minimumVersion: TLSVersion = .version13) throws(CertificateError) {
        self.identity = identity
        context = try TLSContext(method: TLS_server_method())
        try context.limit(to: minimumVersion)
        context.reduceMemory()
        try context.serve(identity)
        try context.resumeWithTickets()
        context.selectApplicationProtocol()
    }

    /// Reads chain and key from PEM files. Rejects a key file that others can read.
    public convenience init(
        certificateFile: String, keyFile: String, minimumVersion: TLSVersion = .version13
    ) throws(CertificateError) {
        try self.init(
            identity: TLSIdentity(certificateFile: certificateFile, keyFile: keyFile), minimumVersion: minimumVersion)
    }
}
