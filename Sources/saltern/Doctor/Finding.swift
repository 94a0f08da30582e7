import TransportSecurity

/// One thing that ``ExamineInstallation`` looked at.
struct Finding: Sendable {
    /// What was looked at; a stable name for programs.
    let subject: String
    let severity: CertificateFinding.Severity
    /// One sentence for people: what was found, and what to do about it.
    let text: String

    init(_ subject: String, _ severity: CertificateFinding.Severity, _ text: String) {
        self.subject = subject
        self.severity = severity
        self.text = text
    }

    /// What was found about certificate and keys of TLS.
    init(_ finding: CertificateFinding) {
        self.init("tls_" + finding.subject.rawValue, finding.severity, finding.text)
    }
}
