internal import Cryptography
internal import HTTPCore

extension OneTimePasswords {
    /// Writes the secret as people type it, base32 without padding, and as what a QR code for authenticator apps says (the
    /// "Key URI Format" that all of them read).
    func write(issuer: String, userid: Userid, to writer: inout JSONWriter) {
        let issuer = PercentEncoding.encode(issuer)
        writer.member("secret", base32: secret)
        writer.member(
            "uri", "otpauth://totp/\(issuer):\(PercentEncoding.encode(userid.string))?secret=", base32: secret,
            "&issuer=\(issuer)&algorithm=SHA1&digits=\(Self.digits)&period=\(Self.period)")
    }
}
