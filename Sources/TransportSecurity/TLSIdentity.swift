internal import COpenSSL
internal import Cryptography

/// A certificate chain and the private key of its first certificate.
public struct TLSIdentity: Sendable {
    /// The server's certificate, then those that link it to an authority.
    public let chain: [Certificate]
    /// The key of the first certificate.
    public let key: PrivateKey

    /// The server's own certificate.
    public let certificate: Certificate

    /// Joins a chain and its key. Rejects a key of another certificate.
    public init(chain: [Certificate], key: PrivateKey) throws(CertificateError) {
        guard let certificate = chain.first else { throw .noCertificate }
        OpenSSLError.clearQueue()
        guard X509_check_private_key(certificate.owner.pointer, key.owner.pointer) == 1 else {
            let error = OpenSSLError(draining: "compare key and certificate")
            if let index = chain.firstIndex(where: { $0.matches(key) }) { throw .wrongChainOrder(position: index + 1) }
            throw .keyDoesNotMatchCertificate(error)
        }
        self.certificate = certificate
        self.chain = chain
        self.key = key
    }

    /// Reads a PEM chain and a PEM key. Rejects a key file that others can read.
    public init(certificateFile: String, keyFile: String) throws(CertificateError) {
        try self.init(
            chain: Certificate.chain(contentsOf: certificateFile), key: PrivateKey(contentsOf: keyFile))
    }
}
