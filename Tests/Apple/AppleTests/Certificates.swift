import COpenSSL
import Foundation
import Testing

/// A self-signed certificate that OpenSSL makes.
struct TestCertificate {
    enum Key {
        case p256, p384, ed25519
        case rsa(Int32)
    }

    let der: [UInt8]
    /// OpenSSL's own SubjectPublicKeyInfo of its key.
    let publicKeyInfo: [UInt8]

    var pem: [UInt8] {
        let lines = Data(der).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return Array("-----BEGIN CERTIFICATE-----\n\(lines)\n-----END CERTIFICATE-----\n".utf8)
    }

    init(_ kind: Key) throws {
        let key = try #require(Self.generate(kind))
        defer { EVP_PKEY_free(key) }
        let certificate = try #require(X509_new())
        defer { X509_free(certificate) }
        X509_set_version(certificate, 2)
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1)
        X509_gmtime_adj(X509_getm_notBefore(certificate), -60)
        X509_gmtime_adj(X509_getm_notAfter(certificate), 3600)
        X509_set_pubkey(certificate, key)
        let isEdwards = if case .ed25519 = kind { true } else { false }
        try #require(X509_sign(certificate, key, isEdwards ? nil : EVP_sha256()) > 0)
        der = try Self.bytes { i2d_X509(certificate, $0) }
        publicKeyInfo = try Self.bytes { i2d_PUBKEY(key, $0) }
    }

    private static func generate(_ kind: Key) -> OpaquePointer? {
        let name =
            switch kind {
            case .p256, .p384: "EC"
            case .ed25519: "ED25519"
            case .rsa: "RSA"
            }
        let context = EVP_PKEY_CTX_new_from_name(nil, name, nil)
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        EVP_PKEY_keygen_init(context)
        switch kind {
        case .p256: EVP_PKEY_CTX_set_group_name(context, "P-256")
        case .p384: EVP_PKEY_CTX_set_group_name(context, "P-384")
        case .ed25519: break
        case .rsa(let bits): EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits)
        }
        return EVP_PKEY_generate(context, &key) == 1 ? key : nil
    }

    private static func bytes(
        _ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
    ) throws -> [UInt8] {
        var pointer: UnsafeMutablePointer<UInt8>?
        let count = encode(&pointer)
        defer { saltern_free(pointer) }
        return [UInt8](UnsafeBufferPointer(start: try #require(pointer), count: Int(count)))
    }
}
