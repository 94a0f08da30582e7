internal import Cryptography
internal import HTTPCore

extension OneTimePasswords {
    /// Writes the secret as people type it, base32 without padding, and as what a QR code for authenticator apps says (the
    /// "Key URI Format" that all of them read). A colon stands between issuer and account and nowhere else: apps split the
    /// label at the first, escaped or not, and some refuse a second.
    func write(issuer: String, userid: Userid, to writer: inout JSONWriter) {
        let name = Self.label(issuer, colon: "")
        let issuer = PercentEncoding.encode(name.isEmpty ? "Saltern" : name)
        let account = PercentEncoding.encode(Self.label(userid.string, colon: "_"))
        writer.member("secret", base32: secret)
        writer.member(
            "uri", "otpauth://totp/\(issuer):\(account)?secret=", base32: secret,
            "&issuer=\(issuer)&algorithm=SHA1&digits=\(Self.digits)&period=\(Self.period)")
    }

    /// `text` with `colon` for each of its colons, and without blanks at its ends.
    private static func label(_ text: String, colon: String) -> String {
        let scalars = text.unicodeScalars.split(separator: ":", omittingEmptySubsequences: false)
        let joined = scalars.map { String($0) }.joined(separator: colon)
        return String(joined.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
}
