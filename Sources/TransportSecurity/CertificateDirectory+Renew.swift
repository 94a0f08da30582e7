extension CertificateDirectory {
    /// Replaces the self-signed certificate by a new one for the same hosts and the same key, so that no pin changes.
    ///
    /// Clients whose anchor is the certificate itself need the new one before the old one expires.
    /// - Returns: The pins, as they were.
    @discardableResult
    public func renew() throws(CertificateError) -> Pins { try Self.renew(in: ProtectedFolder(path)) }

    static func renew(in folder: ProtectedFolder) throws(CertificateError) -> Pins {
        try folder.lock()
        try finishInstallation(in: folder)
        let current = try certificate(in: folder)
        guard current.isSelfIssued else { throw .issuedByAuthority }
        let backup = try backupKey(in: folder)
        let key = try Self.key(of: current, PrivateKey(pem: folder.read(Name.key, access: .owner)), or: backup)
        let identity = try TLSIdentity(chain: [current], key: key)
        let renewed = try SelfSignedCertificate.make(hosts: current.hosts, key: identity.key)
        try folder.write(renewed.pem, to: Name.certificate, access: .everyone, existing: .replace)
        return Pins(active: try key.pin(), backup: try backup?.pin())
    }
}
