internal import COpenSSL
internal import Cryptography
internal import Glibc

/// Creates the certificate of a server that clients pin.
///
/// It verifies against itself as the only anchor, and follows Apple's rules, the strictest: a name in the SAN, the
/// purpose serverAuth, at most 398 days. It is no authority and cannot issue other certificates.
public enum SelfSignedCertificate {
    /// The validity of a certificate, in days.
    public static let validDays = 397

    /// The seconds between the start of the validity and the creation, for clients with late clocks.
    private static let clockTolerance: Int64 = 3600
    private static let secondsPerDay: Int64 = 86400
    /// The maximum length of a common name (RFC 5280 appendix A.1, ub-common-name).
    private static let longestCommonName = 64

    /// Creates a certificate for `hosts`, signed with `key`.
    /// - Parameters:
    ///   - hosts: The hosts of clients' connections. The first one becomes the common name.
    ///   - key: The key of the server.
    ///   - now: The time of creation, in seconds since 1970 (UTC). `nil` for the system's.
    /// - Throws: ``CertificateError/invalidHost(_:)`` when there is no host.
    public static func make(
        hosts: [Host], key: PrivateKey, now: Int64? = nil
    ) throws(CertificateError) -> Certificate {
        guard !hosts.isEmpty else { throw .invalidHost("") }
        OpenSSLError.clearQueue()
        guard let new = X509_new() else { throw .openSSL(OpenSSLError(draining: "allocate a certificate")) }
        let owner = Certificate.Owner(takingOwnershipOf: new)
        let certificate = owner.pointer

        try require(X509_set_version(certificate, Int(X509_VERSION_3)), "set the version")
        try setSerialNumber(certificate)
        let start = (now ?? systemTime()) - clockTolerance
        try require(ASN1_TIME_set(X509_getm_notBefore(certificate), time_t(start)) != nil, "set the start")
        let end = start + Int64(validDays) * secondsPerDay
        try require(ASN1_TIME_set(X509_getm_notAfter(certificate), time_t(end)) != nil, "set the end")
        try require(X509_set_pubkey(certificate, key.owner.pointer), "set the public key")
        try setName(certificate, hosts)
        try addExtensions(certificate, hosts)
        guard X509_sign(certificate, key.owner.pointer, EVP_sha256()) > 0 else {
            throw .openSSL(OpenSSLError(draining: "sign the certificate"))
        }
        return Certificate(owner: owner)
    }

    private static func setSerialNumber(_ certificate: OpaquePointer) throws(CertificateError) {
        var bytes = SecureRandom.bytes(16)
        // The number is positive, and always 16 bytes long.
        bytes[0] = bytes[0] & 0x7F | 0x40
        guard let number = BN_bin2bn(bytes, Int32(bytes.count), nil) else {
            throw .openSSL(OpenSSLError(draining: "make a serial number"))
        }
        defer { BN_free(number) }
        try require(BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nil, "set the serial number")
    }

    private static func setName(_ certificate: OpaquePointer, _ hosts: [Host]) throws(CertificateError) {
        let fitting = hosts.lazy.map(\.description).first { $0.utf8.count <= longestCommonName }
        let commonName = fitting ?? "saltern"
        let name = X509_get_subject_name(certificate)
        try require(
            X509_NAME_add_entry_by_NID(
                name, NID_commonName, MBSTRING_UTF8, commonName, Int32(commonName.utf8.count), -1, 0),
            "set the common name")
        try require(X509_set_issuer_name(certificate, name), "set the issuer")
    }

    private static func addExtensions(_ certificate: OpaquePointer, _ hosts: [Host]) throws(CertificateError) {
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, certificate, certificate, nil, nil, 0)
        // `Host.init` rejects characters with a meaning in OpenSSL's notation.
        let names = hosts.map { host in
            switch host {
            case .name(let name): "DNS:\(name)"
            case .address: "IP:\(host)"
            }
        }
        let extensions: [(Int32, String)] = [
            (NID_basic_constraints, "critical,CA:FALSE"),
            (NID_key_usage, "critical,digitalSignature"),
            (NID_ext_key_usage, "serverAuth"),
            (NID_subject_key_identifier, "hash"),
            (NID_subject_alt_name, names.joined(separator: ",")),
        ]
        for (identifier, value) in extensions {
            guard let new = X509V3_EXT_conf_nid(nil, &context, identifier, value) else {
                throw .openSSL(OpenSSLError(draining: "make the extension \(value)"))
            }
            defer { X509_EXTENSION_free(new) }
            try require(X509_add_ext(certificate, new, -1), "add the extension \(value)")
        }
    }

    private static func require(_ status: Int32, _ operation: String) throws(CertificateError) {
        try require(status == 1, operation)
    }

    private static func require(_ isDone: Bool, _ operation: String) throws(CertificateError) {
        guard isDone else { throw .openSSL(OpenSSLError(draining: operation)) }
    }
}
