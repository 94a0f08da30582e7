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
