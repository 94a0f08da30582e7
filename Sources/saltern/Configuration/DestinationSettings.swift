/// Reads the settings for receivers of outgoing events.
extension Settings {
    /// Reads certificates of authorities in PEM, as bytes: `SALTERN_DESTINATION_CA`, or its file.
    mutating func destinationAuthorities() -> [UInt8]? {
        let name = "SALTERN_DESTINATION_CA"
        guard let text = text(name, orNothing: "none") else { return nil }
        guard text.contains("-----BEGIN CERTIFICATE-----") else {
            refuse(name, text, mustBe: "none, or certificates in PEM; \(name)_FILE names their file")
            return nil
        }
        return Array(text.utf8)
    }
}
