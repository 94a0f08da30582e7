internal import COpenSSL
public import Foundation

/// https://developer.apple.com/documentation/security/sectrust
public final class SecTrust: NSObject {
    fileprivate let chain: [SecCertificate]
    fileprivate var anchors: [SecCertificate] = []
    fileprivate var isAnchoredOnly = false

    /// What a connection has shown, leaf first. (On Apple's platforms it comes with a challenge.)
    public init(chain: [SecCertificate]) { self.chain = chain }
}

/// https://developer.apple.com/documentation/security/sectrustcopycertificatechain(_:)
public func SecTrustCopyCertificateChain(_ trust: SecTrust) -> CFArray? { trust.chain as NSArray }

/// https://developer.apple.com/documentation/security/sectrustsetanchorcertificates(_:_:)
public func SecTrustSetAnchorCertificates(_ trust: SecTrust, _ anchorCertificates: CFArray?) -> OSStatus {
    trust.anchors = anchorCertificates as? [SecCertificate] ?? []
    return errSecSuccess
}

/// https://developer.apple.com/documentation/security/sectrustsetanchorcertificatesonly(_:_:)
public func SecTrustSetAnchorCertificatesOnly(_ trust: SecTrust, _ anchorCertificatesOnly: Bool) -> OSStatus {
    trust.isAnchoredOnly = anchorCertificatesOnly
    return errSecSuccess
}

/// https://developer.apple.com/documentation/security/sectrustevaluatewitherror(_:_:)
///
/// The stand-in trusts what an anchor has signed, if there are anchors, and nothing else; it does not look at names.
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: UnsafeMutablePointer<CFError?>?) -> Bool {
    guard trust.isAnchoredOnly, let leaf = trust.chain.first else { return false }
    defer { ERR_clear_error() }
    return trust.anchors.contains { anchor in
        X509_verify(leaf.certificate, X509_get0_pubkey(anchor.certificate)) == 1
            && X509_cmp_current_time(X509_get0_notAfter(leaf.certificate)) > 0
    }
}
