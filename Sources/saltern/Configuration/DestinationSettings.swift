import TransportSecurity

/// Reads the settings for receivers of outgoing events.
extension Settings {
    /// Reads certificates of authorities in PEM, as bytes: `SALTERN_DESTINATION_CA`, or its file.
    ///
    /// Rejects a certificate that libcurl could not read, because every delivery would fail then.
    mutating func destinationAuthorities() -> [UInt8]? {
        let name = "SALTERN_DESTINATION_CA"
        guard let text = text(name, orNothing: "none") else { return nil }
        let bytes = Array(text.utf8)
        do throws(CertificateError) {
            _ = try Certificate.chain(pem: bytes)
            return bytes
        } catch {
            // Does not quote the value, which may contain a key.
            note("\(name) must be none, or certificates in PEM (\(name)_FILE names their file): \(error)")
            return nil
        }
    }
}
