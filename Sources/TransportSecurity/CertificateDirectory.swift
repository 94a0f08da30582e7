public import Cryptography
internal import Glibc

/// A directory with `certificate.pem`, `key.pem` and `backup-key.pem`.
///
/// Clients that pin both keys continue to work when the active key is replaced. Copy the backup key to another machine
/// if the active key may be stolen here.
public struct CertificateDirectory: Sendable {
    /// The directory.
    public let path: String

    /// The served chain, in PEM.
    public var certificateFile: String { "\(path)/\(Name.certificate)" }
    /// The key of the certificate, in PEM. Only its owner may read it.
    public var keyFile: String { "\(path)/\(Name.key)" }
    /// The key of an interrupted installation (``install(chain:key:minimumVersion:keepsPins:now:)``).
    private var nextKeyFile: String { "\(path)/\(Name.nextKey)" }
    /// The key that the next rotation activates.
    public var backupKeyFile: String { "\(path)/\(Name.backupKey)" }

    /// The names of the files in the directory.
    enum Name {
        static let certificate = "certificate.pem"
        static let key = "key.pem"
        static let backupKey = "backup-key.pem"
        static let all = [certificate, key, backupKey]
        /// The key of a certificate during its installation. It becomes ``key``.
        static let nextKey = "next-key.pem"
    }

    /// Names a directory, and reads nothing.
    public init(path: String) {
        self.path = path
    }

    /// The pins that clients need.
    public struct Pins: Hashable, Sendable {
        /// The pin of the served certificate.
        public let active: SPKIPin
        /// The pin of the backup key, or `nil` without one.
        public let backup: SPKIPin?

        /// Returns whether clients with these pins connect to a server with that key.
        public func contains(_ pin: SPKIPin) -> Bool { pin == active || pin == backup }
    }

    /// Creates keys and a self-signed certificate, and the directory if it is missing. Overwrites nothing.
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
        // The certificate comes last: its presence means that all files exist.
        try folder.write(certificate.pem, to: Name.certificate, access: .everyone, existing: .refuse)
        return Pins(active: try key.pin(), backup: try backup.pin())
    }

    /// Reads the chain and its key.
    ///
    /// After an interrupted rotation or installation, the certificate's key is in another file of the directory. This
    /// method finds it there.
    public func identity() throws(CertificateError) -> TLSIdentity {
        do throws(CertificateError) {
            return try readIdentity()
        } catch {
            // Files that are being replaced do not match. A replacement takes milliseconds.
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

    /// Returns the certificate's key, which is the backup key in the middle of a rotation.
    static func key(
        of certificate: Certificate?, _ key: PrivateKey,
        or backup: @autoclosure () throws(CertificateError) -> PrivateKey?
    ) throws(CertificateError) -> PrivateKey {
        guard let certificate, !certificate.matches(key), let backup = try backup(), certificate.matches(backup) else {
            return key
        }
        return backup
    }

    /// Reads the pins of the certificate and of the backup key.
    public func pins() throws(CertificateError) -> Pins {
        let active = try certificate().pin
        let backup = try backupKey()?.pin()
        return Pins(active: active, backup: backup)
    }

    /// Reads the served certificate in DER, for apps that ship it.
    public func exportDER() throws(CertificateError) -> [UInt8] {
        try certificate().der
    }

    /// Reads the certificate in the opened folder.
    static func certificate(in folder: ProtectedFolder) throws(CertificateError) -> Certificate {
        let chain = try Certificate.chain(pem: folder.read(Name.certificate, access: .everyone))
        guard let certificate = chain.first else { throw .noCertificate }
        return certificate
    }

    /// Reads the backup key in the opened folder. Returns nil without one.
    static func backupKey(in folder: ProtectedFolder) throws(CertificateError) -> PrivateKey? {
        guard try folder.exists(Name.backupKey) else { return nil }
        return try PrivateKey(pem: folder.read(Name.backupKey, access: .owner))
    }

    func certificate() throws(CertificateError) -> Certificate {
        guard let certificate = try Certificate.chain(contentsOf: certificateFile).first else { throw .noCertificate }
        return certificate
    }

    /// Reads the backup key. Returns `nil` without one, as for a certificate from an authority.
    func backupKey() throws(CertificateError) -> PrivateKey? {
        guard ProtectedFile.exists(backupKeyFile) else { return nil }
        return try PrivateKey(contentsOf: backupKeyFile)
    }
}

extension CertificateDirectory {
    private static let secondsPerDay: Int64 = 86400
    /// The days before the end of a certificate at which the check warns.
    ///
    /// certbot renews a certificate of 90 days 30 days before its end, and one of 45 days 15 days before it.
    public static let warningDays = 14

    /// Checks everything that a server needs, and reports each point once.
    /// - Parameters:
    ///   - hosts: The hosts of clients' connections. A host that the certificate does not cover is a problem.
    ///   - warningDays: The days before the end of the certificate at which the check warns.
    ///   - minimumVersion: The oldest version of TLS that is served.
    ///   - now: The time to compare with, in seconds since 1970 (UTC). Nil for the system's.
    public func check(
        hosts: [Host] = [], warningDays: Int = warningDays, minimumVersion: TLSVersion = .version13, now: Int64? = nil
    ) -> [CertificateFinding] {
        let now = now ?? systemTime()
        var findings: [CertificateFinding] = []
        func report(_ subject: CertificateFinding.Subject, _ severity: CertificateFinding.Severity, _ text: String) {
            findings.append(CertificateFinding(subject: subject, severity: severity, text: text))
        }

        let chain = load(.certificateFile, certificateFile, report) { () throws(CertificateError) in
            try Certificate.chain(contentsOf: certificateFile)
        }
        checkKeyInCertificate(report)
        checkOtherFiles(report)
        let key = load(.keyFile, keyFile, report) { () throws(CertificateError) in try PrivateKey(contentsOf: keyFile) }
        var backup: PrivateKey?
        if ProtectedFile.exists(backupKeyFile) {
            backup = load(.backupKeyFile, backupKeyFile, report) { () throws(CertificateError) in
                try PrivateKey(contentsOf: backupKeyFile)
            }
        } else {
            report(.backupKeyFile, .warning, "there is no backup key, so that replacing the key breaks every pin")
        }
        guard let chain, let certificate = chain.first else { return findings }

        // If the chain has another order, all further checks concern the certificate of the key.
        let position = key.flatMap { key in chain.firstIndex { $0.matches(key) } } ?? 0
        let ordered = [chain[position]] + chain[..<position] + chain[(position + 1)...]
        if let key, position == 0 { checkMatch(certificate, key, backup, report) }
        if key != nil { checkServing(minimumVersion, position == 0 ? chain : nil, report) }
        checkExpiry(ordered[0], warningDays, now, report)
        checkHosts(ordered[0], hosts, report)
        checkVerification(ordered, now, report)
        if let backup, let key { checkBackup(key, backup, report) }
        return findings
    }

    private typealias Report = (CertificateFinding.Subject, CertificateFinding.Severity, String) -> Void

    private func load<Value>(
        _ subject: CertificateFinding.Subject, _ path: String, _ report: Report,
        _ body: () throws(CertificateError) -> Value
    ) -> Value? {
        do throws(CertificateError) {
            let value = try body()
            report(subject, .fine, "\(path) can be read")
            return value
        } catch {
            report(subject, .problem, "\(error)")
            return nil
        }
    }

    /// Checks a certificate's file for a key, which some tools add. All users may read this file.
    private func checkKeyInCertificate(_ report: Report) {
        guard hasKey(certificateFile) else { return }
        if (try? ProtectedFile.read(certificateFile, access: .owner)) == nil {
            report(
                .certificateFile, .problem,
                "\(certificateFile) has a private key in it, and others can read it: remove the key from the file")
        } else {
            report(
                .certificateFile, .warning,
                "\(certificateFile) has a private key in it: only \(keyFile) needs one")
        }
    }

    private func checkMatch(
        _ certificate: Certificate, _ key: PrivateKey, _ backup: PrivateKey?, _ report: Report
    ) {
        if certificate.matches(key) {
            report(.keyMatchesCertificate, .fine, "the key belongs to the certificate")
        } else if let backup, certificate.matches(backup) {
            report(
                .keyMatchesCertificate, .problem, "a rotation was interrupted: run it again to finish it")
        } else if (try? identity()) != nil {
            report(
                .keyMatchesCertificate, .problem,
                "an installation was interrupted: run it again to finish it")
        } else {
            report(.keyMatchesCertificate, .problem, "the key belongs to another certificate")
        }
    }

    /// Checks with the server's own rules, which apply at a start and a reload.
    /// - Parameter chain: The chain, when its first certificate is the one of the key.
    private func checkServing(_ minimumVersion: TLSVersion, _ chain: [Certificate]?, _ report: Report) {
        do throws(CertificateError) {
            _ = try TLSServerContext(identity: identity(), minimumVersion: minimumVersion)
            report(.serving, .fine, "a server can serve certificate and key")
        } catch .wrongChainOrder(let position) {
            report(.chainOrder, .problem, "\(CertificateError.wrongChainOrder(position: position))")
            return
        } catch .keyDoesNotMatchCertificate {
            // The failure is reported already.
            return
        } catch {
            report(.serving, .problem, "a server does not start with certificate and key: \(error)")
        }
        guard let chain,
            let position = chain.indices.dropFirst().first(where: { !chain[$0].isIssuer(of: chain[$0 - 1]) })
        else { return }
        report(
            .chainOrder, .warning,
            "certificate \(position + 1) of the chain has not issued the certificate before it: clients with TLS 1.2 may refuse "
                + "the chain")
    }

    /// Checks the directory's other files for keys: copies, or leftovers of an interruption.
    private func checkOtherFiles(_ report: Report) {
        guard let folder = opendir(path) else { return }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder), names.count < 1_000 {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !Name.all.contains(name) { names.append(name) }
        }
        for name in names.sorted() where hasExposedKey("\(path)/\(name)") {
            report(
                .otherFiles, .problem,
                "\(path)/\(name) has a private key in it, and others can read it: remove the file")
        }
    }

    private func hasExposedKey(_ file: String) -> Bool {
        (try? ProtectedFile.read(file, access: .owner)) == nil && hasKey(file)
    }

    private func hasKey(_ file: String) -> Bool {
        guard let contents = try? ProtectedFile.read(file, access: .everyone) else { return false }
        return String(decoding: contents.withUnsafeBytes { Array($0) }, as: UTF8.self).contains("PRIVATE KEY-----")
    }

    private func checkExpiry(_ certificate: Certificate, _ warningDays: Int, _ now: Int64, _ report: Report) {
        let days = (certificate.notAfter - now) / Self.secondsPerDay
        if certificate.notBefore > now {
            report(.expiry, .problem, "the certificate is not valid yet")
        } else if certificate.notAfter <= now {
            report(.expiry, .problem, "the certificate has expired")
        } else if days < Int64(warningDays) {
            report(.expiry, .warning, "the certificate expires in \(days) days")
        } else {
            report(.expiry, .fine, "the certificate expires in \(days) days")
        }
    }

    private func checkHosts(_ certificate: Certificate, _ wanted: [Host], _ report: Report) {
        let hosts = certificate.hosts
        let missing = wanted.filter { !certificate.covers($0) }
        if hosts.isEmpty {
            report(.hosts, .problem, "the certificate names no host in its subject alternative name")
        } else if missing.isEmpty {
            report(.hosts, .fine, "the certificate is for \(hosts.map(\.description).joined(separator: ", "))")
        } else {
            let remedy =
                certificate.isSelfIssued
                ? "certificate renew \(Self.options(hosts + missing)) creates one for the same key"
                : "ask the authority for a certificate with that name, and install it with certificate install"
            report(
                .hosts, .problem,
                "the certificate is not for \(missing.map(\.description).joined(separator: ", ")), but for "
                    + "\(hosts.map(\.description).joined(separator: ", ")): \(remedy)")
        }
    }

    /// Returns `--host` options as words for a shell. Omits names that the option rejects, which may be anything.
    private static func options(_ hosts: [Host]) -> String {
        hosts.compactMap { try? Host($0.description).description }.map { name in
            name.contains("*") ? "--host '\(name)'" : "--host \(name)"
        }.joined(separator: " ")
    }

    private func checkVerification(_ chain: [Certificate], _ now: Int64, _ report: Report) {
        guard let certificate = chain.first else { return }
        if let reason = certificate.verificationFailure(intermediates: Array(chain.dropFirst()), at: now) {
            report(.verification, .problem, "the certificate does not verify: \(reason)")
        } else if certificate.isSelfIssued {
            report(.verification, .fine, "the certificate verifies against itself")
        } else {
            report(.verification, .fine, "the chain verifies against the system's authorities")
        }
    }

    private func checkBackup(_ key: PrivateKey, _ backup: PrivateKey, _ report: Report) {
        guard let active = try? key.pin(), let next = try? backup.pin() else {
            report(.backupDiffers, .problem, "the keys cannot be compared")
            return
        }
        if active == next {
            report(.backupDiffers, .problem, "the backup key is the active key: run the rotation again")
        } else {
            report(.backupDiffers, .fine, "the backup key differs from the active key")
        }
    }
}

extension CertificateDirectory {
    /// Replaces certificate and key by those of an authority, for example from certbot.
    ///
    /// Nothing changes unless a server could serve the pair now. Each step replaces one whole file. ``identity()``
    /// finds the certificate's key after each step:
    ///
    /// 1. The new key is stored beside the old one.
    /// 2. The new chain replaces the old one.
    /// 3. The new key replaces the old one.
    ///
    /// After an interruption, the next change of the directory finishes the installation. Only the certificates and the
    /// key are written, without the sources' other contents. If the backup key becomes the active key, a new backup key
    /// is created.
    /// - Parameters:
    ///   - chain: A PEM chain, the server's certificate first.
    ///   - key: The PEM key of that certificate.
    ///   - minimumVersion: The oldest version of TLS that is served.
    ///   - keepsPins: Rejects a key with another pin than the served certificate and the backup key, if they exist.
    ///   - now: The time to compare with, in seconds since 1970 (UTC). Nil for the system's.
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

    /// Finishes an interrupted installation: the key of the served certificate becomes `key.pem`. Removes the key of
    /// another certificate. The folder is locked.
    private static func finishInstallation(in folder: ProtectedFolder) throws(CertificateError) {
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

extension CertificateDirectory {
    /// Replaces the self-signed certificate by a new one for the same key. No pin changes.
    ///
    /// Clients that use the certificate itself as anchor need the new one before the old one expires.
    /// - Parameter hosts: The hosts of the new certificate. Empty for those of the present one.
    /// - Returns: The unchanged pins.
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

extension CertificateDirectory {
    /// Makes the backup key the active one, with a new self-signed certificate for the same hosts and a new backup key.
    ///
    /// Clients that pin both old keys stay connected. Each step replaces one whole file. No key is lost, and
    /// ``identity()`` finds the certificate's key after each step:
    ///
    /// 1. A new certificate for the backup key is stored.
    /// 2. The backup key also becomes the active key.
    /// 3. A new backup key is stored.
    ///
    /// After an interruption, the next rotation finishes the first one and does not rotate twice.
    /// - Returns: The new pins. The active one is the earlier backup pin.
    @discardableResult
    public func rotate() throws(CertificateError) -> Pins { try Self.rotate(in: ProtectedFolder(path)) }

    static func rotate(in folder: ProtectedFolder) throws(CertificateError) -> Pins {
        // Two concurrent changes would each overwrite the result of the other.
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
