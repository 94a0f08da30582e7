import CommandLineKit
import HTTPCore
import TransportSecurity

/// One result of ``ExamineInstallation`` or ``CheckCertificate``.
struct Finding: Sendable {
    /// The subject of the check: a stable name for programs.
    let subject: String
    let severity: CertificateFinding.Severity
    /// One sentence for people, with the result and the remedy.
    let text: String

    init(_ subject: String, _ severity: CertificateFinding.Severity, _ text: String) {
        self.subject = subject
        self.severity = severity
        self.text = text
    }

    /// Converts a finding about TLS certificate and keys.
    init(_ finding: CertificateFinding) {
        self.init("tls_" + finding.subject.rawValue, finding.severity, finding.text)
    }
}

extension Console {
    /// Prints findings, as one line each or as one object.
    /// - Throws: ``CommandFailure`` when one of them is a problem.
    func report(_ findings: [Finding], asJSON: Bool) throws(CommandFailure) {
        let problems = findings.count { $0.severity == .problem }
        if asJSON {
            printJSON { writer in
                writer.member("problems", problems)
                writer.member("warnings", findings.count { $0.severity == .warning })
                writer.array("findings") { writer in
                    for finding in findings {
                        writer.object { writer in
                            writer.member("subject", finding.subject)
                            writer.member("severity", finding.severity.rawValue)
                            writer.member("text", finding.text)
                        }
                    }
                }
            }
        } else {
            for finding in findings { print("\(finding.severity.rawValue): \(finding.text)") }
        }
        if problems > 0 { throw CommandFailure("\(problems) to fix") }
    }
}
