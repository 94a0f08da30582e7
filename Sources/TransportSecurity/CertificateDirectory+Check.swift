internal import Cryptography
internal import Glibc

extension CertificateDirectory {
    private static let secondsPerDay: Int64 = 86400
    /// The days before its end at which a certificate becomes a warning. certbot renews one of 90 days 30 days before its end,
    /// and one of 45 days 15 days before it.
    public static let warningDays = 14

    /// Looks at everything that has to be right, and reports each point once.
    /// - Parameters:
    ///   - hosts: Hosts that clients connect to: one that the certificate is not for is a problem.
    ///   - warningDays: The days before its end at which a certificate becomes a warning.
    ///   - minimumVersion: The oldest version of TLS that is served.
    ///   - now: The time to compare with, in seconds since 1970 (UTC); the system's when it is `nil`.
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

        // In a chain of another order, the certificate of the key is the one that everything else is about.
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

    /// The certificate's file is for everybody. Some tools write the key into it, too.
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
                .keyMatchesCertificate, .problem, "a rotation was interrupted: run it again, and it will be finished")
        } else if (try? identity()) != nil {
            report(
                .keyMatchesCertificate, .problem,
                "an installation was interrupted: run it again, and it will be finished")
        } else {
            report(.keyMatchesCertificate, .problem, "the key belongs to another certificate")
        }
    }

    /// Asks for the server's own judgement, which is what a start and a reload go by.
    /// - Parameter chain: The chain, when its first certificate is the one of the key.
    private func checkServing(_ minimumVersion: TLSVersion, _ chain: [Certificate]?, _ report: Report) {
        do throws(CertificateError) {
            _ = try TLSServerContext(identity: identity(), minimumVersion: minimumVersion)
            report(.serving, .fine, "a server can serve certificate and key")
        } catch .wrongChainOrder(let position) {
            report(.chainOrder, .problem, "\(CertificateError.wrongChainOrder(position: position))")
            return
        } catch .keyDoesNotMatchCertificate {
            // Reported as such.
            return
        } catch {
            report(.serving, .problem, "a server does not start with certificate and key: \(error)")
        }
        guard let chain,
            let position = chain.indices.dropFirst().first(where: { !chain[$0].isIssuer(of: chain[$0 - 1]) })
        else { return }
        report(
            .chainOrder, .warning,
            "certificate \(position + 1) of the chain has not issued the one in front of it: clients with TLS 1.2 may refuse "
                + "the chain")
    }

    /// Any other file of the directory may have a key in it, too: a copy, or what an interruption has left.
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
                ? "certificate renew \((hosts + missing).map { "--host \($0)" }.joined(separator: " ")) makes one for the same key"
                : "ask the authority for a certificate with that name, and put it in place with certificate install"
            report(
                .hosts, .problem,
                "the certificate is not for \(missing.map(\.description).joined(separator: ", ")), but for "
                    + "\(hosts.map(\.description).joined(separator: ", ")): \(remedy)")
        }
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
