internal import Cryptography
internal import HTTPCore

extension OneTimePasswords {
    /// Writes the secret in base32 without padding for typing, and as the URI of a QR code (the "Key URI Format" of
    /// authenticator apps). A single colon separates issuer and account: apps split the label at the first colon,
    /// escaped or not, and some reject a second.
    func write(issuer: String, userid: Userid, to writer: inout JSONWriter) {
        let name = Self.label(issuer, colon: "")
        let issuer = PercentEncoding.encode(name.isEmpty ? "Saltern" : name)
        let account = PercentEncoding.encode(Self.label(userid.string, colon: "_"))
        writer.member("secret", base32: secret)
        writer.member(
            "uri", "otpauth://totp/\(issuer):\(account)?secret=", base32: secret,
            "&issuer=\(issuer)&algorithm=SHA1&digits=\(Self.digits)&period=\(Self.period)")
    }

    /// Returns `text` with `colon` in place of each colon, without blanks at its ends.
    private static func label(_ text: String, colon: String) -> String {
        let scalars = text.unicodeScalars.split(separator: ":", omittingEmptySubsequences: false)
        let joined = scalars.map { String($0) }.joined(separator: colon)
        return String(joined.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
}
