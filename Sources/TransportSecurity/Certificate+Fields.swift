internal import COpenSSL
internal import Cryptography
internal import Glibc

extension Certificate {
    /// The subject's distinguished name, as RFC 2253 writes it.
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

    /// When the certificate starts to be valid, in seconds since 1970 (UTC).
    public var notBefore: Int64 { seconds(X509_get0_notBefore(owner.pointer)) }

    /// When the certificate ends to be valid, in seconds since 1970 (UTC).
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

    /// The pin that clients compare with.
    public var pin: SPKIPin { SPKIPin(subjectPublicKeyInfo: subjectPublicKeyInfo) }

    /// True when the certificate names itself as its issuer.
    public var isSelfIssued: Bool {
        X509_NAME_cmp(X509_get_subject_name(owner.pointer), X509_get_issuer_name(owner.pointer)) == 0
    }

    /// Returns whether the certificate's subject is the issuer that `other` names.
    func isIssuer(of other: Certificate) -> Bool {
        X509_NAME_cmp(X509_get_subject_name(owner.pointer), X509_get_issuer_name(other.owner.pointer)) == 0
    }

    /// The hosts of the subject alternative name; entries that are neither DNS names nor addresses are left out.
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

    /// Returns whether clients that connect to a host take the certificate for it (RFC 9525, section 6.3): a name with `*` as its
    /// first label is that of any host with another label there.
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
