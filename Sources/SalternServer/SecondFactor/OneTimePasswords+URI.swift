internal import Cryptography
internal import HTTPCore

extension OneTimePasswords {
    /// The secret as people type it: base32 without padding.
    var secretText: String { Base32.encodeToString(secret, isPadded: false) }

    /// What a QR code for authenticator apps says (the "Key URI Format" that all of them read).
    func uri(issuer: String, userid: Userid) -> String {
        let issuer = PercentEncoding.encode(issuer)
        return "otpauth://totp/\(issuer):\(PercentEncoding.encode(userid.string))?secret=\(secretText)&issuer=\(issuer)"
            + "&algorithm=SHA1&digits=\(Self.digits)&period=\(Self.period)"
    }
}
