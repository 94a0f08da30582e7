internal import HTTPCore

/// What a person shows as second factor: the digits of an authenticator app, or a recovery code.
enum SecondFactorCode: Sendable {
    case oneTime(OneTimeCode)
    case recovery(SecondFactorRecoveryCode)

    /// Reads what was typed or pasted: white space and dashes do not count, nor does the case of letters.
    init(json: JSONValue) throws {
        guard let code = try SecondFactorCode(optional: json) else { throw MalformedSecondFactorCode() }
        self = code
    }

    /// The same; nil when the text has no character, as a form sends a field that was left empty.
    init?(optional json: JSONValue) throws {
        guard let digits = PastedCode.read(try json.text(), keepsHyphens: false) else {
            throw MalformedSecondFactorCode()
        }
        if digits.isEmpty { return nil }
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
            detail: "`totp` must be a code of six digits, or a recovery code of twenty letters and digits.")
    }
}
