/// One thing that ``CertificateDirectory/check()`` looked at.
public struct CertificateFinding: Hashable, Sendable {
    /// How bad it is.
    public enum Severity: String, Sendable {
        /// As it should be.
        case fine
        /// Works today, needs attention.
        case warning
        /// A server would not start, or clients would not connect.
        case problem
    }

    /// What was looked at; a stable name for programs.
    public enum Subject: String, Sendable {
        case certificateFile = "certificate_file"
        case keyFile = "key_file"
        case backupKeyFile = "backup_key_file"
        case keyMatchesCertificate = "key_matches_certificate"
        case chainOrder = "chain_order"
        case serving
        case otherFiles = "other_files"
        case expiry
        case hosts
        case verification
        case backupDiffers = "backup_differs"
    }

    public let subject: Subject
    public let severity: Severity
    /// One sentence for people.
    public let text: String
}

extension CertificateFinding: CustomStringConvertible {
    public var description: String { "\(severity.rawValue): \(text)" }
}
