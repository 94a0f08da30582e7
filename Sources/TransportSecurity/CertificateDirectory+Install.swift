public import Cryptography

extension CertificateDirectory {
    /// Replaces certificate and key by those of an authority, for example by what certbot has fetched.
    ///
    /// Nothing is changed unless a server could serve the pair now. Each step replaces one file as a whole, in an order in
    /// which ``identity()`` finds the certificate's key at any time:
    ///
    /// 1. the new key beside the old one;
    /// 2. the new chain in place of the old one;
    /// 3. the new key in place of the old one.
    ///
    /// After an interruption, the next change of the directory finishes what was begun. What is written is the certificates and
    /// the key alone, whatever else the sources contain. A backup key that becomes the active one is followed by a new one.
    /// - Parameters:
    ///   - chain: A PEM chain, the server's certificate first.
    ///   - key: The PEM key of that certificate.
    ///   - minimumVersion: The oldest version of TLS that is served.
    ///   - keepsPins: Whether a key is refused that has neither the pin of the certificate that is served nor that of the backup
    ///     key, as far as there is one.
    ///   - now: The time to compare with, in seconds since 1970 (UTC); the system's when it is `nil`.
    /// - Returns: The pins of the new certificate and of the backup key.
    @discardableResult
    public func install(
        chain: some ByteSource, key: some ByteSource, minimumVersion: TLSVersion = .version13,
        keepsPins: Bool = false, now: Int64? = nil
    ) throws(CertificateError) -> Pins {
        let identity = try TLSIdentity(chain: Certificate.chain(pem: chain), key: PrivateKey(pem: key))
        _ = try TLSServerContext(identity: identity, minimumVersion: minimumVersion)
        let now = now ?? systemTime()
        guard identity.certificate.notBefore <= now else { throw .notValidNow(expired: false) }
        guard identity.certificate.notAfter > now else { throw .notValidNow(expired: true) }
        try ProtectedFolder.make(path, isOwnedLikeParent: true)
        return try Self.install(identity, in: ProtectedFolder(path), keepsPins: keepsPins)
    }

    private static func install(
        _ identity: TLSIdentity, in folder: ProtectedFolder, keepsPins: Bool
    ) throws(CertificateError) -> Pins {
        try folder.lock()
        try finishInstallation(in: folder)
        for name in Name.all { try folder.requireReplaceable(name) }
        let active = try identity.key.pin()
        if keepsPins, try folder.exists(Name.certificate) {
            let pins = Pins(active: try certificate(in: folder).pin, backup: try backupKey(in: folder)?.pin())
            guard pins.contains(active) else { throw .unpinnedKey(pin: "\(active)") }
        }
        try folder.write(
            identity.key.pem(), to: Name.nextKey, access: .owner, existing: .replace, ownedLike: Name.key)
        let chain = identity.chain.flatMap(\.pem)
        try folder.write(chain, to: Name.certificate, access: .everyone, existing: .replace)
        try folder.rename(Name.nextKey, to: Name.key)
        guard let backup = try backupKey(in: folder) else { return Pins(active: active, backup: nil) }
        var next = try backup.pin()
        if next == active {
            let new = try PrivateKey.generate()
            try new.write(to: Name.backupKey, in: folder, existing: .replace)
            next = try new.pin()
        }
        return Pins(active: active, backup: next)
    }

    /// Brings an interrupted installation to its end: the key of the certificate that is served becomes `key.pem`. A key of
    /// another certificate is removed. The folder is locked.
    static func finishInstallation(in folder: ProtectedFolder) throws(CertificateError) {
        guard try folder.exists(Name.nextKey) else { return }
        if try folder.exists(Name.certificate),
            let next = try? PrivateKey(pem: folder.read(Name.nextKey, access: .owner)),
            try certificate(in: folder).matches(next)
        {
            try folder.rename(Name.nextKey, to: Name.key)
        } else {
            try folder.remove(Name.nextKey)
        }
    }
}
