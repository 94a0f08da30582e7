/// A directory with `certificate.pem`, `key.pem` and `backup-key.pem`.
///
/// The backup key is what makes pinning safe to live with: clients that pin both keys go on working when the
/// active one has to be replaced. Move a copy of it to another machine if the active key may be stolen here.
public struct CertificateDirectory: Sendable {
    /// The directory.
    public let path: String

    /// The chain that is served, in PEM.
    public var certificateFile: String { "\(path)/certificate.pem" }
    /// The key of the certificate, in PEM, readable by its owner only.
    public var keyFile: String { "\(path)/key.pem" }
    /// The key that the next rotation activates.
    public var backupKeyFile: String { "\(path)/backup-key.pem" }

    /// Names a directory; nothing is read yet.
    public init(path: String) {
        self.path = path
    }

    /// The pins that clients should know.
    public struct Pins: Hashable, Sendable {
        /// The pin of the certificate that is served.
        public let active: SPKIPin
        /// The pin of the key that comes next; `nil` when there is no backup key.
        public let backup: SPKIPin?
    }

    /// Makes keys and a self-signed certificate. Overwrites nothing; makes the directory when it is missing.
    @discardableResult
    public func create(hosts: [Host]) throws(CertificateError) -> Pins {
        for file in [certificateFile, keyFile, backupKeyFile] where ProtectedFile.exists(file) {
            throw .alreadyExists(path: file)
        }
        let key = try PrivateKey.generate()
        let backup = try PrivateKey.generate()
        let certificate = try SelfSignedCertificate.make(hosts: hosts, key: key)
        try ProtectedFile.makeDirectory(path)
        try key.write(to: keyFile, existing: .refuse)
        try backup.write(to: backupKeyFile, existing: .refuse)
        // The certificate comes last: when it is there, everything is.
        try ProtectedFile.write(certificate.pem, to: certificateFile, access: .everyone, existing: .refuse)
        return try pins()
    }

    /// The chain and the key that belongs to it.
    ///
    /// When a rotation was interrupted the certificate's key may still be in the backup file; it is found there.
    public func identity() throws(CertificateError) -> TLSIdentity {
        let chain = try Certificate.chain(contentsOf: certificateFile)
        let key = try PrivateKey(contentsOf: keyFile)
        if let certificate = chain.first, !certificate.matches(key), let backup = try backupKey(),
            certificate.matches(backup)
        {
            return try TLSIdentity(chain: chain, key: backup)
        }
        return try TLSIdentity(chain: chain, key: key)
    }

    /// The pins of the certificate and of the backup key.
    public func pins() throws(CertificateError) -> Pins {
        let active = try certificate().pin
        let backup = try backupKey()?.pin()
        return Pins(active: active, backup: backup)
    }

    /// When the served certificate ends, in seconds since the epoch.
    public func notAfter() throws(CertificateError) -> Int64 { try certificate().notAfter }

    /// The served certificate in DER, for apps that ship it.
    public func exportDER() throws(CertificateError) -> [UInt8] {
        try certificate().der
    }

    func certificate() throws(CertificateError) -> Certificate {
        guard let certificate = try Certificate.chain(contentsOf: certificateFile).first else { throw .noCertificate }
        return certificate
    }

    /// The backup key; `nil` when there is none, as with a certificate from an authority.
    func backupKey() throws(CertificateError) -> PrivateKey? {
        guard ProtectedFile.exists(backupKeyFile) else { return nil }
        return try PrivateKey(contentsOf: backupKeyFile)
    }
}
