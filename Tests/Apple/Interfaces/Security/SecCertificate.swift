internal import COpenSSL
public import Foundation

/// https://developer.apple.com/documentation/security/seccertificate
public final class SecCertificate: NSObject {
    /// `X509 *`, owned.
    let certificate: OpaquePointer

    fileprivate init(takingOwnershipOf certificate: OpaquePointer) { self.certificate = certificate }

    deinit { X509_free(certificate) }
}

/// https://developer.apple.com/documentation/security/seckey
public final class SecKey: NSObject {
    let external: Data

    fileprivate init(external: Data) { self.external = external }
}

/// https://developer.apple.com/documentation/security/seccertificatecreatewithdata(_:_:)
public func SecCertificateCreateWithData(_ allocator: AnyObject?, _ data: CFData) -> SecCertificate? {
    let bytes = [UInt8](data as Data)
    return bytes.withUnsafeBufferPointer { buffer in
        var next = buffer.baseAddress
        guard let certificate = d2i_X509(nil, &next, buffer.count) else {
            ERR_clear_error()
            return nil
        }
        return SecCertificate(takingOwnershipOf: certificate)
    }
}

/// https://developer.apple.com/documentation/security/seccertificatecopykey(_:)
public func SecCertificateCopyKey(_ certificate: SecCertificate) -> SecKey? {
    // OpenSSL's i2d_PublicKey writes what the next function is documented to return.
    guard let key = X509_get0_pubkey(certificate.certificate) else { return nil }
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = i2d_PublicKey(key, &bytes)
    guard count > 0, let bytes else { return nil }
    defer { saltern_free(bytes) }
    return SecKey(external: Data(bytes: bytes, count: Int(count)))
}

/// https://developer.apple.com/documentation/security/seckeycopyexternalrepresentation(_:_:): "PKCS #1 format for an RSA
/// key", "ANSI X9.63 standard using a byte string of 04 || X || Y" for an elliptic curve public key.
public func SecKeyCopyExternalRepresentation(_ key: SecKey, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?)
    -> CFData?
{ key.external as NSData }
