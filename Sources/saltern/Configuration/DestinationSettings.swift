import TransportSecurity

/// Reads the settings for receivers of outgoing events.
extension Settings {
    /// Reads certificates of authorities in PEM, as bytes: `SALTERN_DESTINATION_CA`, or its file.
    mutating func destinationAuthorities() -> [UInt8]? {
        let name = "SALTERN_DESTINATION_CA"
        guard let text = text(name, orNothing: "none") else { return nil }
        let bytes = Array(text.utf8)
        do throws(CertificateError) {
            _ = try Certificate.chain(pem: bytes)
        } catch {
            refuse(name, text, mustBe: "none, or certificates in PEM; \(name)_FILE names their file")
            return nil
        }
        return bytes
    }
}
