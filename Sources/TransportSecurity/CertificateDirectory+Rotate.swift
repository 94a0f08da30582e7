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
    public func rotate() throws(CertificateError) -> Pins { try Self.rotate(in: ProtectedFolder(path)) }

    static func rotate(in folder: ProtectedFolder) throws(CertificateError) -> Pins {
        // Two changes at once would each go on from what the other has replaced.
        try folder.lock()
        try finishInstallation(in: folder)
        for name in Name.all { try folder.requireReplaceable(name) }
        let current = try certificate(in: folder)
        let active = try PrivateKey(pem: folder.read(Name.key, access: .owner))
        guard let backup = try backupKey(in: folder) else {
            throw .cannotRead(
                path: "\(folder.path)/\(Name.backupKey)", reason: "there is no backup key to rotate to")
        }
        if !current.matches(backup) {
            guard current.isSelfIssued else { throw .issuedByAuthority }
            let renewed = try SelfSignedCertificate.make(hosts: current.hosts, key: backup)
            try folder.write(renewed.pem, to: Name.certificate, access: .everyone, existing: .replace)
        }
        if try active.pin() != backup.pin() {
            try backup.write(to: Name.key, in: folder, existing: .replace)
        }
        let next = try PrivateKey.generate()
        try next.write(to: Name.backupKey, in: folder, existing: .replace)
        return Pins(active: try backup.pin(), backup: try next.pin())
    }
}
