internal import COpenSSL
public import Cryptography
internal import Glibc

/// An X.509 certificate.
public struct Certificate: Sendable {
    let owner: Owner

    /// Reads one certificate in DER.
    public init(der: some ByteSource) throws(CertificateError) {
        OpenSSLError.clearQueue()
        let certificate: OpaquePointer? = der.withContiguousBytes { bytes in
            var cursor = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            guard let start = cursor, let certificate = d2i_X509(nil, &cursor, bytes.count) else { return nil }
            // Bytes after the certificate mean another format.
            guard let end = cursor, end - start == bytes.count else {
                X509_free(certificate)
                return nil
            }
            return certificate
        }
        guard let certificate else { throw .invalidCertificate(OpenSSLError(draining: "read a DER certificate")) }
        owner = Owner(takingOwnershipOf: certificate)
    }

    init(owner: Owner) {
        self.owner = owner
    }

    /// Reads a chain in PEM, the server's own certificate first. Text between the certificates is ignored.
    public static func chain(pem: some ByteSource) throws(CertificateError) -> [Certificate] {
        OpenSSLError.clearQueue()
        let result = MemoryBIO.withReader(of: pem) { bio -> Result<[Certificate], CertificateError> in
            var chain: [Certificate] = []
            while let certificate = PEM_read_bio_X509(bio, nil, nil, nil) {
                chain.append(Certificate(owner: Owner(takingOwnershipOf: certificate)))
            }
            // The end of the input is an error entry too, and the only expected one.
            let isEnd = saltern_ERR_get_reason(ERR_peek_last_error()) == PEM_R_NO_START_LINE
            let error = OpenSSLError(draining: "read a PEM certificate")
            guard isEnd else { return .failure(.invalidCertificate(error)) }
            return chain.isEmpty ? .failure(.noCertificate) : .success(chain)
        }
        return try result.get()
    }

    /// Reads a chain from a PEM file.
    public static func chain(contentsOf path: String) throws(CertificateError) -> [Certificate] {
        try chain(pem: ProtectedFile.read(path, access: .everyone))
    }

    /// The certificate in DER.
    public var der: [UInt8] {
        var der: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509(owner.pointer, &der)
        guard count > 0, let der else {
            preconditionFailure("\(OpenSSLError(draining: "encode a certificate that was decoded"))")
        }
        defer { saltern_free(der) }
        return [UInt8](UnsafeBufferPointer(start: der, count: Int(count)))
    }

    /// The certificate in PEM.
    public var pem: [UInt8] {
        let bio = MemoryBIO()
        let status = PEM_write_bio_X509(bio.pointer, owner.pointer)
        precondition(status == 1, "\(OpenSSLError(draining: "encode a certificate that was decoded"))")
        return bio.withWrittenBytes { [UInt8]($0) }
    }
}

extension Certificate: Equatable {
    public static func == (left: Certificate, right: Certificate) -> Bool {
        X509_cmp(left.owner.pointer, right.owner.pointer) == 0
    }
}

extension Certificate {
    /// Owns an `X509 *`.
    ///
    /// `@unchecked Sendable` is safe: a certificate never changes after it was read or signed. OpenSSL locks the caches
    /// inside one.
    final class Owner: @unchecked Sendable {
        let pointer: OpaquePointer

        init(takingOwnershipOf pointer: OpaquePointer) {
            self.pointer = pointer
        }

        deinit { X509_free(pointer) }
    }
}

extension Certificate {
    /// The subject's distinguished name, in the form of RFC 2253.
    public var subject: String {
        let bio = MemoryBIO()
        _ = saltern_X509_NAME_print_RFC2253(bio.pointer, X509_get_subject_name(owner.pointer))
        return bio.withWrittenBytes { String(decoding: $0, as: UTF8.self) }
    }

    /// The serial number, most significant byte first, without leading zeros.
    public var serialNumber: [UInt8] {
        guard let number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(owner.pointer), nil) else { return [] }
        defer { BN_free(number) }
        return [UInt8](unsafeUninitializedCapacity: Int(BN_num_bits(number) + 7) / 8) { bytes, initialized in
            initialized = Int(BN_bn2bin(number, bytes.baseAddress))
        }
    }

    /// The start of the validity, in seconds since 1970 (UTC).
    public var notBefore: Int64 { seconds(X509_get0_notBefore(owner.pointer)) }

    /// The end of the validity, in seconds since 1970 (UTC).
    public var notAfter: Int64 { seconds(X509_get0_notAfter(owner.pointer)) }

    /// The public key as SubjectPublicKeyInfo in DER (RFC 5280 section 4.1).
    public var subjectPublicKeyInfo: [UInt8] {
        var der: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(owner.pointer), &der)
        guard count > 0, let der else {
            preconditionFailure("\(OpenSSLError(draining: "encode a public key that was decoded"))")
        }
        defer { saltern_free(der) }
        return [UInt8](UnsafeBufferPointer(start: der, count: Int(count)))
    }

    /// The pin for clients.
    public var pin: SPKIPin { SPKIPin(subjectPublicKeyInfo: subjectPublicKeyInfo) }

    /// True when subject and issuer are equal.
    public var isSelfIssued: Bool {
        X509_NAME_cmp(X509_get_subject_name(owner.pointer), X509_get_issuer_name(owner.pointer)) == 0
    }

    /// Returns whether the certificate's subject is the issuer that `other` names.
    func isIssuer(of other: Certificate) -> Bool {
        X509_NAME_cmp(X509_get_subject_name(owner.pointer), X509_get_issuer_name(other.owner.pointer)) == 0
    }

    /// The hosts of the subject alternative name. Entries other than DNS names and addresses are left out.
    public var hosts: [Host] {
        guard let raw = X509_get_ext_d2i(owner.pointer, NID_subject_alt_name, nil, nil) else { return [] }
        let names = OpaquePointer(raw)
        defer { GENERAL_NAMES_free(names) }
        return (0..<saltern_GENERAL_NAMES_count(names)).compactMap { index -> Host? in
            var type: Int32 = 0
            guard let name = saltern_GENERAL_NAMES_value(names, index),
                let value = GENERAL_NAME_get0_value(name, &type)
            else { return nil }
            let text = value.assumingMemoryBound(to: ASN1_STRING.self)
            let bytes = UnsafeBufferPointer(start: ASN1_STRING_get0_data(text), count: Int(ASN1_STRING_length(text)))
            switch type {
            case GEN_DNS: return .name(String(decoding: bytes, as: UTF8.self))
            case GEN_IPADD: return .address([UInt8](bytes))
            default: return nil
            }
        }
    }

    /// Returns whether the certificate is valid for a host of a connection (RFC 9525, section 6.3).
    ///
    /// A first label `*` stands for any one label.
    public func covers(_ host: Host) -> Bool {
        guard case .name(let name) = host else { return hosts.contains(host) }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        return hosts.contains { other in
            guard case .name(let text) = other else { return false }
            let others = text.lowercased().split(separator: ".", omittingEmptySubsequences: false)
            if labels == others { return true }
            return others.first == "*" && labels.first != "*" && labels.dropFirst() == others.dropFirst()
        }
    }

    /// True when the certificate belongs to `key`.
    public func matches(_ key: PrivateKey) -> Bool {
        let matches = X509_check_private_key(owner.pointer, key.owner.pointer) == 1
        OpenSSLError.clearQueue()
        return matches
    }

    private func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64 {
        var fields = tm()
        let status = ASN1_TIME_to_tm(time, &fields)
        precondition(status == 1, "\(OpenSSLError(draining: "read the time of a certificate that was decoded"))")
        return Int64(timegm(&fields))
    }
}

extension Certificate {
    /// Returns OpenSSL's reason for which a TLS client would reject the certificate; `nil` for a valid one.
    ///
    /// A self-issued certificate is verified against itself as the only anchor, with the strict rules of RFC 5280. Any
    /// other is verified against the system's authorities.
    /// - Parameters:
    ///   - intermediates: The certificates that link it to an authority.
    ///   - now: The time of the verification, in seconds since 1970 (UTC).
    func verificationFailure(intermediates: [Certificate], at now: Int64) -> String? {
        OpenSSLError.clearQueue()
        defer { OpenSSLError.clearQueue() }
        guard let store = X509_STORE_new() else { return "no memory" }
        defer { X509_STORE_free(store) }
        let hasAnchors =
            isSelfIssued ? X509_STORE_add_cert(store, owner.pointer) : X509_STORE_set_default_paths(store)
        guard hasAnchors == 1 else { return "\(OpenSSLError(draining: "find the anchors"))" }

        guard let untrusted = saltern_X509_stack_new() else { return "no memory" }
        defer { saltern_X509_stack_free(untrusted) }
        for certificate in intermediates {
            guard saltern_X509_stack_push(untrusted, certificate.owner.pointer) > 0 else { return "no memory" }
        }

        guard let context = X509_STORE_CTX_new() else { return "no memory" }
        defer { X509_STORE_CTX_free(context) }
        guard X509_STORE_CTX_init(context, store, owner.pointer, untrusted) == 1,
            X509_STORE_CTX_set_default(context, "ssl_server") == 1
        else { return "\(OpenSSLError(draining: "set up the verification"))" }
        let flags = isSelfIssued ? UInt(X509_V_FLAG_X509_STRICT) | UInt(X509_V_FLAG_CHECK_SS_SIGNATURE) : 0
        X509_STORE_CTX_set_flags(context, flags)
        X509_STORE_CTX_set_time(context, 0, time_t(now))
        guard X509_verify_cert(context) != 1 else { return nil }
        return String(cString: X509_verify_cert_error_string(Int(X509_STORE_CTX_get_error(context))))
    }
}

/// The SHA-256 of a certificate's SubjectPublicKeyInfo, which clients pin (RFC 7469 section 2.4).
///
/// It identifies the key, not the certificate, and stays the same at a renewal.
public struct SPKIPin: Hashable, Sendable {
    /// The digest of the SubjectPublicKeyInfo.
    public let digest: SHA256Digest

    /// Hashes a SubjectPublicKeyInfo in DER.
    public init(subjectPublicKeyInfo: some ByteSource) {
        digest = SHA256.hash(subjectPublicKeyInfo)
    }

    /// Reads ``base64`` or ``description``. Returns `nil` for other text.
    public init?(_ text: some StringProtocol) {
        var encoded = Array(text.utf8)
        let prefix = Array(Self.prefix.utf8)
        if encoded.starts(with: prefix) { encoded.removeFirst(prefix.count) }
        guard let bytes = try? Base64.decode(encoded), let digest = SHA256Digest(bytes) else { return nil }
        self.digest = digest
    }

    /// The pin in base64, as in `GET /v1/service`.
    public var base64: String { Base64.encodeToString(digest) }

    private static let prefix = "sha256//"
}

extension SPKIPin: CustomStringConvertible {
    /// The form of curl's `--pinnedpubkey`: `sha256//` and base64.
    public var description: String { Self.prefix + base64 }
}
