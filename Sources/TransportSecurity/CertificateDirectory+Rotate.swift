extension CertificateDirectory {
    /// Makes the backup key the active one, with a new self-signed certificate for the same hosts, and makes a
    /// new backup key. Clients that pin both of the old keys stay connected throughout.
    ///
    /// Each step replaces one file as a whole, in an order in which no key is lost and ``identity()`` finds the
    /// certificate's key at any time:
    ///
    /// 1. a new certificate for the backup key: certificate and backup key belong together;
    /// 2. the backup key becomes the active key too;
    /// 3. a new backup key.
    ///
    /// After an interruption, rotating again finishes what was begun and does not rotate twice.
    /// - Returns: The new pins; the active one is the backup pin of before.
    @discardableResult
    public func rotate() throws(CertificateError) -> Pins {
        for file in [certificateFile, keyFile, backupKeyFile] { try ProtectedFile.requireReplaceable(file) }
        let current = try certificate()
        let active = try PrivateKey(contentsOf: keyFile)
        guard let backup = try backupKey() else {
            throw .cannotRead(path: backupKeyFile, reason: "there is no backup key to rotate to")
        }
        if !current.matches(backup) {
            guard current.isSelfIssued else { throw .issuedByAuthority }
            let renewed = try SelfSignedCertificate.make(hosts: current.hosts, key: backup)
            try ProtectedFile.write(renewed.pem, to: certificateFile, access: .everyone, existing: .replace)
        }
        if try active.pin() != backup.pin() {
            try backup.write(to: keyFile, existing: .replace)
        }
        try PrivateKey.generate().write(to: backupKeyFile, existing: .replace)
        return try pins()
    }
}
