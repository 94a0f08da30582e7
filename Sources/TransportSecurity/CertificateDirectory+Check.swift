internal import Cryptography

extension CertificateDirectory {
    private static let secondsPerDay: Int64 = 86400
    /// When the remaining days become a warning.
    private static let warningDays: Int64 = 30

    /// Looks at everything that has to be right, and reports each point once.
    ///
    /// `now` is the time to compare with, in seconds since 1970 (UTC); the system's when it is `nil`.
    public func check(now: Int64? = nil) -> [CertificateFinding] {
        let now = now ?? systemTime()
        var findings: [CertificateFinding] = []
        func report(_ subject: CertificateFinding.Subject, _ severity: CertificateFinding.Severity, _ text: String) {
            findings.append(CertificateFinding(subject: subject, severity: severity, text: text))
        }

        let chain = load(.certificateFile, certificateFile, report) { () throws(CertificateError) in
            try Certificate.chain(contentsOf: certificateFile)
        }
        checkKeyInCertificate(report)
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

        if let key { checkMatch(certificate, key, backup, report) }
        checkExpiry(certificate, now, report)
        checkHosts(certificate, report)
        checkVerification(chain, now, report)
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
        guard let contents = try? ProtectedFile.read(certificateFile, access: .everyone),
            String(decoding: contents.withUnsafeBytes { Array($0) }, as: UTF8.self).contains("PRIVATE KEY-----")
        else { return }
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
        } else {
            report(.keyMatchesCertificate, .problem, "the key belongs to another certificate")
        }
    }

    private func checkExpiry(_ certificate: Certificate, _ now: Int64, _ report: Report) {
        let days = (certificate.notAfter - now) / Self.secondsPerDay
        if certificate.notBefore > now {
            report(.expiry, .problem, "the certificate is not valid yet")
        } else if certificate.notAfter <= now {
            report(.expiry, .problem, "the certificate has expired")
        } else if days < Self.warningDays {
            report(.expiry, .warning, "the certificate expires in \(days) days")
        } else {
            report(.expiry, .fine, "the certificate expires in \(days) days")
        }
    }

    private func checkHosts(_ certificate: Certificate, _ report: Report) {
        let hosts = certificate.hosts
        if hosts.isEmpty {
            report(.hosts, .problem, "the certificate names no host in its subject alternative name")
        } else {
            report(.hosts, .fine, "the certificate is for \(hosts.map(\.description).joined(separator: ", "))")
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
