extension CertificateDirectory {
    /// Replaces the self-signed certificate by a new one for the same key, so that no pin changes.
    ///
    /// Clients whose anchor is the certificate itself need the new one before the old one expires.
    /// - Parameter hosts: Those of the new certificate; none for those of the present one.
    /// - Returns: The pins, as they were.
    @discardableResult
    public func renew(hosts: [Host] = []) throws(CertificateError) -> Pins {
        try Self.renew(in: ProtectedFolder(path), hosts: hosts)
    }

    static func renew(in folder: ProtectedFolder, hosts: [Host] = []) throws(CertificateError) -> Pins {
        try folder.lock()
        try finishInstallation(in: folder)
        let current = try certificate(in: folder)
        guard current.isSelfIssued else { throw .issuedByAuthority }
        let backup = try backupKey(in: folder)
        let key = try Self.key(of: current, PrivateKey(pem: folder.read(Name.key, access: .owner)), or: backup)
        let identity = try TLSIdentity(chain: [current], key: key)
        let renewed = try SelfSignedCertificate.make(
            hosts: hosts.isEmpty ? current.hosts : hosts, key: identity.key)
        try folder.write(renewed.pem, to: Name.certificate, access: .everyone, existing: .replace)
        return Pins(active: try key.pin(), backup: try backup?.pin())
    }
}
