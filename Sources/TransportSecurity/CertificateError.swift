public import Cryptography

/// The reason for which a key, a certificate or a directory of them cannot be used.
public enum CertificateError: Error, Hashable, Sendable {
    /// A file or directory cannot be opened or read. `reason` is the system's wording.
    case cannotRead(path: String, reason: String)
    /// A file or directory cannot be written. `reason` is the system's wording.
    case cannotWrite(path: String, reason: String)
    /// A file is larger than any certificate chain or key.
    case fileTooLarge(path: String)
    /// A key file is not private (``ProtectedFile/isPrivate(_:)``). `mode` has its permission bits.
    case keyFileNotPrivate(path: String, mode: UInt32)
    /// An existing file would be overwritten.
    case alreadyExists(path: String)
    /// The bytes are not a certificate.
    case invalidCertificate(OpenSSLError)
    /// The bytes are not a private key without a passphrase.
    case invalidKey(OpenSSLError)
    /// The chain has no certificate.
    case noCertificate
    /// The private key belongs to another certificate.
    case keyDoesNotMatchCertificate(OpenSSLError)
    /// The private key belongs to a later certificate of the chain. `position` counts from 1.
    case wrongChainOrder(position: Int)
    /// The certificate has expired (`expired`), or is not valid yet.
    case notValidNow(expired: Bool)
    /// A certificate needs at least one host name or address, all of which clients can match.
    case invalidHost(String)
    /// An authority issued this certificate and has to issue the next. Rotation makes self-signed certificates.
    case issuedByAuthority
    /// Clients that pin keys lack the pin of the key to install.
    case unpinnedKey(pin: String)
    /// OpenSSL failed.
    case openSSL(OpenSSLError)
}

extension CertificateError {
    /// A stable name of the error, for programs.
    public var code: String {
        switch self {
        case .cannotRead: "cannot_read"
        case .cannotWrite: "cannot_write"
        case .fileTooLarge: "file_too_large"
        case .keyFileNotPrivate: "key_file_not_private"
        case .alreadyExists: "already_exists"
        case .invalidCertificate: "invalid_certificate"
        case .invalidKey: "invalid_key"
        case .noCertificate: "no_certificate"
        case .keyDoesNotMatchCertificate: "key_does_not_match_certificate"
        case .wrongChainOrder: "wrong_chain_order"
        case .notValidNow: "not_valid_now"
        case .invalidHost: "invalid_host"
        case .issuedByAuthority: "issued_by_authority"
        case .unpinnedKey: "unpinned_key"
        case .openSSL: "openssl"
        }
    }
}

extension CertificateError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .cannotRead(let path, let reason):
            "cannot read \(path): \(reason)"
        case .cannotWrite(let path, let reason):
            "cannot write \(path): \(reason)"
        case .fileTooLarge(let path):
            "\(path) is too large to be a certificate chain or a key"
        case .keyFileNotPrivate(let path, let mode):
            "others can read the key file \(path) (mode 0\(String(mode, radix: 8))): run chmod 600 on it, or "
                + "give it to root with a group that reads it, chmod 640"
        case .alreadyExists(let path):
            "\(path) exists already and is not overwritten"
        case .invalidCertificate(let error):
            "not a certificate: \(error)"
        case .invalidKey(let error):
            "not a private key without a passphrase: \(error)"
        case .noCertificate:
            "there is no certificate in the chain"
        case .keyDoesNotMatchCertificate(let error):
            "the key does not match the certificate: \(error)"
        case .wrongChainOrder(let position):
            "the chain is in the wrong order: the key belongs to its certificate \(position), which must be first, "
                + "followed by the certificates of its issuers in order"
        case .notValidNow(let expired):
            expired ? "the certificate has expired" : "the certificate is not valid yet"
        case .invalidHost(let host):
            "not a host name or an IP address: \(host.isEmpty ? "(empty)" : host)"
        case .issuedByAuthority:
            "the certificate was issued by an authority: ask it for a new one, for the same key to renew it, "
                + "for the backup key to rotate"
        case .unpinnedKey(let pin):
            "the key \(pin) is neither the served key nor the backup key, which clients pin; nothing was changed"
        case .openSSL(let error):
            "\(error)"
        }
    }
}

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
