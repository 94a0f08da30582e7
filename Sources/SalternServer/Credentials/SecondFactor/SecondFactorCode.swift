internal import HTTPCore

/// What a person shows as second factor: the digits of an authenticator app, or a recovery code.
enum SecondFactorCode: Sendable {
    case oneTime(OneTimeCode)
    case recovery(SecondFactorRecoveryCode)

    /// Longer than any code with whatever separators.
    private static let byteLimit = 64

    /// Reads what was typed: spaces and hyphens do not count, nor does the case of letters.
    init(json: JSONValue) throws {
        let text = try json.text()
        guard text.count <= Self.byteLimit else { throw MalformedSecondFactorCode() }
        var digits = WipedBytes(capacity: text.count)
        for byte in text.utf8 where byte != UInt8(ascii: " ") && byte != UInt8(ascii: "-") { digits.append(byte) }
        if let code = OneTimeCode(digits) {
            self = .oneTime(code)
        } else if let code = SecondFactorRecoveryCode(digits) {
            self = .recovery(code)
        } else {
            throw MalformedSecondFactorCode()
        }
    }
}

/// What arrived as a second factor cannot be a code.
struct MalformedSecondFactorCode: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unprocessableContent, "malformed_totp",
            detail: "A code has six digits; a recovery code has twenty letters and digits.")
    }
}
