internal import COpenSSL
internal import Cryptography

/// What all connections of a server share: identity, versions, suites, ticket keys.
///
/// One context serves every event loop, so that a session ticket from one is good on the others. To reload the
/// certificate make a new context and use it for new connections; the old one lives as long as its connections.
public final class TLSServerContext: Sendable {
    /// The chain and key that are served.
    public let identity: TLSIdentity

    let context: TLSContext

    /// - Parameters:
    ///   - identity: Chain and key, self-signed or from a public authority.
    ///   - minimumVersion: TLS 1.3 unless old clients have to be let in.
    /// - Throws: ``CertificateError`` when OpenSSL refuses chain or key.
    public init(identity: TLSIdentity, minimumVersion: TLSVersion = .version13) throws(CertificateError) {
        self.identity = identity
        context = try TLSContext(method: TLS_server_method())
        try context.limit(to: minimumVersion)
        context.reduceMemory()
        try context.serve(identity)
        try context.resumeWithTickets()
        context.selectApplicationProtocol()
    }

    /// Reads chain and key from PEM files; refuses a key file that others can read.
    public convenience init(
        certificateFile: String, keyFile: String, minimumVersion: TLSVersion = .version13
    ) throws(CertificateError) {
        try self.init(
            identity: TLSIdentity(certificateFile: certificateFile, keyFile: keyFile), minimumVersion: minimumVersion)
    }
}
