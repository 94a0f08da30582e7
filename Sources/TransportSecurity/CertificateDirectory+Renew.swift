extension CertificateDirectory {
    /// Replaces the self-signed certificate by a new one for the same hosts and the same key, so that no pin changes.
    ///
    /// Clients whose anchor is the certificate itself need the new one before the old one expires.
    /// - Returns: The pins, as they were.
    @discardableResult
    public func renew() throws(CertificateError) -> Pins {
        let current = try certificate()
        guard current.isSelfIssued else { throw .issuedByAuthority }
        let identity = try identity()
        let renewed = try SelfSignedCertificate.make(hosts: current.hosts, key: identity.key)
        try ProtectedFile.write(renewed.pem, to: certificateFile, access: .everyone, existing: .replace)
        return try pins()
    }
}
