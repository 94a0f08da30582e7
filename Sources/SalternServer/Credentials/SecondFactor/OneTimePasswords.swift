internal import Cryptography
internal import HTTPCore
internal import Postgres

/// Time-based one-time passwords of authenticator apps (RFC 6238): HMAC-SHA1, six digits, 30 seconds.
struct OneTimePasswords: Sendable {
    static let secretByteCount = 20
    static let digits = 6
    /// The length of a time step in seconds.
    static let period: Int64 = 30
    /// The tolerated difference of the app's clock in steps, in both directions.
    private static let drift: Int64 = 1

    let secret: SecureBytes

    static func random() -> OneTimePasswords {
        OneTimePasswords(secret: SecureRandom.secureBytes(secretByteCount))
    }

    /// Returns the number of a moment's step.
    static func step(at moment: Timestamp) -> Int64 { max(moment.unixSeconds, 0) / period }

    /// Returns the code of a step (RFC 4226 §5.3, with the step as the counter).
    func code(at step: Int64) -> OneTimeCode {
        let counter = Swift.withUnsafeBytes(of: step.bigEndian) { [UInt8]($0) }
        let mac = HMACSHA1.authenticationCode(for: counter, using: secret)
        let offset = Int(mac[mac.count - 1] & 15)
        var number: UInt32 = 0
        for byte in mac[offset..<offset + 4] { number = number << 8 | UInt32(byte) }
        return OneTimeCode(number: number & 0x7FFF_FFFF)
    }

    /// Returns the valid step after `lastStep` that has this code. Nil if the code is wrong or used.
    ///
    /// All valid steps are computed and compared, even after a match.
    func step(of code: OneTimeCode, at moment: Timestamp, after lastStep: Int64) -> Int64? {
        let current = Self.step(at: moment)
        var found: Int64?
        for step in current - Self.drift...current + Self.drift {
            let fits = self.code(at: step) == code
            if fits, step > lastStep, found == nil { found = step }
        }
        return found
    }
}

/// The digits that an authenticator app shows. Compared in constant time, never printed.
struct OneTimeCode: Sendable, Equatable {
    private let digits: SecureBytes

    /// Takes the last six digits of a number.
    init(number: UInt32) {
        digits = SecureBytes(count: OneTimePasswords.digits) { buffer in
            var rest = number
            for index in buffer.indices.reversed() {
                buffer[index] = UInt8(ascii: "0") + UInt8(rest % 10)
                rest /= 10
            }
        }
    }

    /// Accepts six ASCII digits. Nil for other text.
    init?(_ text: some Collection<UInt8>) {
        guard text.count == OneTimePasswords.digits, text.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        digits = SecureBytes(count: OneTimePasswords.digits) { digits in
            for (index, digit) in text.enumerated() { digits[index] = digit }
        }
    }

    /// The six digits as text.
    var text: String { digits.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
}

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

/// A second factor as stored in the database.
struct StoredSecondFactor: Sendable {
    /// The secret of the one-time passwords, sealed with the master key for its account.
    let sealedSecret: [UInt8]
    /// The time at which the secret was created. It identifies the secret within the account, even when the secret is
    /// resealed.
    let enrolledAt: Timestamp
    /// The time step of the latest accepted code.
    let lastStep: Int64

    /// Reads sealed secret, time of enrolment and latest step. Nil if they are null, because there is no second factor.
    init?(row: inout RowReader) throws(PostgresError) {
        let sealedSecret: [UInt8]? = try row.next()
        let enrolledAt: Timestamp? = try row.next()
        let lastStep: Int64? = try row.next()
        guard let sealedSecret, let enrolledAt, let lastStep else { return nil }
        self.sealedSecret = sealedSecret
        self.enrolledAt = enrolledAt
        self.lastStep = lastStep
    }

    init(sealedSecret: [UInt8], enrolledAt: Timestamp, lastStep: Int64) {
        self.sealedSecret = sealedSecret
        self.enrolledAt = enrolledAt
        self.lastStep = lastStep
    }

    /// Opens the one-time passwords.
    ///
    /// - Throws: ``SecondFactorUnreadable`` if no master key opens the secret.
    func passwords(of account: AccountID, _ masterKey: MasterKey) throws(SecondFactorUnreadable) -> OneTimePasswords {
        do throws(MasterKeyError) {
            return OneTimePasswords(secret: try masterKey.open(sealedSecret, for: .oneTimePasswords(of: account)))
        } catch {
            throw SecondFactorUnreadable(accountID: account, reason: error)
        }
    }
}

/// The error of a second factor whose secret cannot be opened: the master key is missing, or the row was changed. It
/// never lets a log-in skip the second factor. The reason is logged for the operator.
struct SecondFactorUnreadable: OperatorProblem {
    let accountID: AccountID
    let reason: MasterKeyError

    func write(to log: Log, requestID: RequestID) {
        log.write(
            .error, "second_factor_unreadable",
            ["requestId": requestID, "accountId": accountID.uuid, "error": OperatorText("\(reason)")])
    }

    var problem: Problem {
        Problem(
            .serviceUnavailable, "second_factor_unavailable",
            detail: "The server cannot check one-time codes now. A recovery code works.",
            responseFields: ["Retry-After": "60"])
    }
}
