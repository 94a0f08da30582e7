internal import HTTPCore

/// A code for the second factor: the digits of an authenticator app, or a recovery code.
enum SecondFactorCode: Sendable {
    case oneTime(OneTimeCode)
    case recovery(SecondFactorRecoveryCode)

    /// Reads a typed or pasted code. White space, dashes and the case of letters are ignored.
    init(json: JSONValue) throws {
        guard let code = try SecondFactorCode(optional: json) else { throw MalformedSecondFactorCode() }
        self = code
    }

    /// Reads an optional code. Nil if the text is empty, like an empty field of a form.
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

/// The error of a malformed code for the second factor.
struct MalformedSecondFactorCode: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unprocessableContent, "malformed_totp",
            detail: "`totp` must be a code of six digits, or a recovery code of twenty letters and digits.")
    }
}
