/// A directory with `certificate.pem`, `key.pem` and `backup-key.pem`.
///
/// The backup key is what makes pinning safe to live with: clients that pin both keys go on working when the
/// active one has to be replaced. Move a copy of it to another machine if the active key may be stolen here.
public struct CertificateDirectory: Sendable {
    /// The directory.
    public let path: String

    /// The chain that is served, in PEM.
    public var certificateFile: String { "\(path)/\(Name.certificate)" }
    /// The key of the certificate, in PEM, readable by its owner only.
    public var keyFile: String { "\(path)/\(Name.key)" }
    /// The key that an interrupted installation has left (``install(chain:key:minimumVersion:)``).
    var nextKeyFile: String { "\(path)/\(Name.nextKey)" }
    /// The key that the next rotation activates.
    public var backupKeyFile: String { "\(path)/\(Name.backupKey)" }

    /// The names of the files in the directory.
    enum Name {
        static let certificate = "certificate.pem"
        static let key = "key.pem"
        static let backupKey = "backup-key.pem"
        static let all = [certificate, key, backupKey]
        /// The key of a certificate that is being installed, until it is ``key``.
        static let nextKey = "next-key.pem"
    }

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

        /// Returns whether clients that have these pins connect to a server with a key.
        public func contains(_ pin: SPKIPin) -> Bool { pin == active || pin == backup }
    }

    /// Makes keys and a self-signed certificate. Overwrites nothing; makes the directory when it is missing.
    @discardableResult
    public func create(hosts: [Host]) throws(CertificateError) -> Pins {
        let key = try PrivateKey.generate()
        let backup = try PrivateKey.generate()
        let certificate = try SelfSignedCertificate.make(hosts: hosts, key: key)
        try ProtectedFolder.make(path)
        let folder = try ProtectedFolder(path)
        try folder.lock()
        for name in Name.all where try folder.exists(name) { throw .alreadyExists(path: "\(path)/\(name)") }
        try key.write(to: Name.key, in: folder, existing: .refuse)
        try backup.write(to: Name.backupKey, in: folder, existing: .refuse)
        // The certificate comes last: when it is there, everything is.
        try folder.write(certificate.pem, to: Name.certificate, access: .everyone, existing: .refuse)
        return Pins(active: try key.pin(), backup: try backup.pin())
    }

    /// The chain and the key that belongs to it.
    ///
    /// When a rotation or an installation was interrupted, the certificate's key is in another file of the directory, and is
    /// found there.
    public func identity() throws(CertificateError) -> TLSIdentity {
        do throws(CertificateError) {
            return try readIdentity()
        } catch {
            // Files that are replaced meanwhile do not match. What replaces them ends within milliseconds.
            guard case .keyDoesNotMatchCertificate = error else { throw error }
            return try readIdentity()
        }
    }

    private func readIdentity() throws(CertificateError) -> TLSIdentity {
        let chain = try Certificate.chain(contentsOf: certificateFile)
        let key = try PrivateKey(contentsOf: keyFile)
        if let certificate = chain.first, !certificate.matches(key), ProtectedFile.exists(nextKeyFile) {
            let next = try PrivateKey(contentsOf: nextKeyFile)
            if certificate.matches(next) { return try TLSIdentity(chain: chain, key: next) }
        }
        return try TLSIdentity(chain: chain, key: Self.key(of: chain.first, key, or: backupKey()))
    }

    /// The certificate's key: in the middle of a rotation it is the backup key.
    static func key(
        of certificate: Certificate?, _ key: PrivateKey,
        or backup: @autoclosure () throws(CertificateError) -> PrivateKey?
    ) throws(CertificateError) -> PrivateKey {
        guard let certificate, !certificate.matches(key), let backup = try backup(), certificate.matches(backup) else {
            return key
        }
        return backup
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

    /// The certificate in the folder that the directory was when it was opened.
    static func certificate(in folder: ProtectedFolder) throws(CertificateError) -> Certificate {
        let chain = try Certificate.chain(pem: folder.read(Name.certificate, access: .everyone))
        guard let certificate = chain.first else { throw .noCertificate }
        return certificate
    }

    /// The backup key in that folder; nil when there is none.
    static func backupKey(in folder: ProtectedFolder) throws(CertificateError) -> PrivateKey? {
        guard try folder.exists(Name.backupKey) else { return nil }
        return try PrivateKey(pem: folder.read(Name.backupKey, access: .owner))
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
