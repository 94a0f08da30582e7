internal import Cryptography

/// Certificates in PEM (RFC 7468 section 5).
enum PEMCertificates {
    /// Returns the DER of each certificate; nil when there is none, or one is not base64.
    static func decode(_ text: [UInt8]) -> [[UInt8]]? {
        var certificates: [[UInt8]] = []
        var encoded: [UInt8]?
        for line in text.split(whereSeparator: { $0 == 0x0a || $0 == 0x0d }) {
            if line.elementsEqual("-----BEGIN CERTIFICATE-----".utf8) {
                encoded = []
            } else if line.elementsEqual("-----END CERTIFICATE-----".utf8) {
                guard let complete = encoded, let certificate = try? Base64.decode(complete) else { return nil }
                certificates.append(certificate)
                encoded = nil
            } else {
                encoded?.append(contentsOf: line)
            }
        }
        return certificates.isEmpty || encoded != nil ? nil : certificates
    }
}
