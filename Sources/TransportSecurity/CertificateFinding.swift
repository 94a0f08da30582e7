/// The result of one check by ``CertificateDirectory/check(hosts:warningDays:minimumVersion:now:)``.
public struct CertificateFinding: Hashable, Sendable {
    /// The severity of a result.
    public enum Severity: String, Sendable {
        /// Correct.
        case fine
        /// Works now, and needs attention.
        case warning
        /// A server would not start, or clients would not connect.
        case problem
    }

    /// The subject of the check, with a stable name for programs.
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
