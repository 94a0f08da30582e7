internal import Cryptography
internal import Foundation
internal import Security

/// Decides whether a server is trusted, by its certificate, before anything is sent.
struct ServerTrust: Sendable {
    private let pins: Set<SHA256Digest>
    /// The only anchors, in DER; nil for the system's.
    private let anchors: [[UInt8]]?

    /// - Returns: nil when the anchor is not a certificate.
    init?(_ server: PinnedServer) {
        pins = Set(server.pins.compactMap(PinnedServer.digest(ofPin:)))
        guard let anchor = server.anchor else {
            anchors = nil
            return
        }
        anchors = PEMCertificates.decode(anchor)
        guard let anchors, anchors.allSatisfy({ Self.certificate($0) != nil }) else { return nil }
    }

    /// Returns the reason for which a connection must not be used; nil otherwise. The system checks name, dates and
    /// purpose.
    func refusal(of trust: SecTrust) -> TransportError? {
        if let anchors {
            let certificates = anchors.compactMap(Self.certificate)
            guard SecTrustSetAnchorCertificates(trust, certificates as CFArray) == errSecSuccess,
                SecTrustSetAnchorCertificatesOnly(trust, true) == errSecSuccess
            else { return .untrustedCertificate }
        }
        guard SecTrustEvaluateWithError(trust, nil) else { return .untrustedCertificate }
        if pins.isEmpty { return nil }
        guard let leaf = (SecTrustCopyCertificateChain(trust) as? [SecCertificate])?.first,
            let pin = Self.pin(of: leaf), pins.contains(pin)
        else { return .pinMismatch }
        return nil
    }

    private static func certificate(_ der: [UInt8]) -> SecCertificate? {
        SecCertificateCreateWithData(nil, Data(der) as CFData)
    }

    private static func pin(of certificate: SecCertificate) -> SHA256Digest? {
        guard let key = SecCertificateCopyKey(certificate),
            let bytes = SecKeyCopyExternalRepresentation(key, nil) as Data?,
            let information = SubjectPublicKeyInfo.encoding(ofKey: [UInt8](bytes))
        else { return nil }
        return SHA256.hash(information)
    }
}

/// Encodes the public key of a certificate in the form that pins use (RFC 5280 section 4.1.2.7).
///
/// The system returns the bare key: for RSA a PKCS #1 key, for elliptic curves a point
/// (`SecKeyCopyExternalRepresentation`). This type adds the part before it.
enum SubjectPublicKeyInfo {
    /// Encodes a bare key.
    /// - Returns: DER; nil for a key of another kind.
    static func encoding(ofKey key: [UInt8]) -> [UInt8]? {
        switch (key.first, key.count) {
        case (0x30, _): element(0x30, rsa + bits(key))
        case (0x04, 65): element(0x30, element(0x30, ecPublicKey + p256) + bits(key))
        case (0x04, 97): element(0x30, element(0x30, ecPublicKey + p384) + bits(key))
        default: nil
        }
    }

    /// AlgorithmIdentifier of rsaEncryption (1.2.840.113549.1.1.1) with NULL (RFC 3279 section 2.3.1).
    private static let rsa: [UInt8] = element(0x30, [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0])
    /// id-ecPublicKey (1.2.840.10045.2.1), and the curves prime256v1 and secp384r1 (RFC 5480 section 2.1).
    private static let ecPublicKey: [UInt8] = [6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1]
    private static let p256: [UInt8] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]
    private static let p384: [UInt8] = [6, 5, 0x2b, 0x81, 4, 0, 0x22]

    /// A BIT STRING of whole bytes.
    private static func bits(_ bytes: [UInt8]) -> [UInt8] { element(3, [0] + bytes) }

    /// Tag, length, content (X.690 section 8.1).
    private static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        if content.count < 0x80 { return [tag, UInt8(content.count)] + content }
        var length: [UInt8] = []
        var rest = content.count
        while rest > 0 {
            length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        }
        return [tag, 0x80 | UInt8(length.count)] + length + content
    }
}
