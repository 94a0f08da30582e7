import CommandLineKit
import SalternServer

/// Reads the settings of identity tokens: issuer, audiences and lifetime.
extension Settings {
    /// Reads the audiences of the operator's services: `SALTERN_TOKEN_AUDIENCES`.
    mutating func audiences() -> [Audience] {
        let name = "SALTERN_TOKEN_AUDIENCES"
        let audiences = list(
            name, "audiences such as billing,push=account,support=account+userid", "an audience", Audience.init)
        // The list compares whole elements. Two with one name differ in their options.
        if Set(audiences).count == audiences.count, Set(audiences.map(\.name)).count < audiences.count {
            note("\(name) has an audience twice")
        }
        return audiences
    }

    /// Reads the policy for tokens and the file of the signing keys. Without an issuer the server signs none.
    mutating func tokens() -> (policy: TokenPolicy, file: SigningKeyFile?) {
        let before = problems.count
        let issuer = tokenIssuer()
        let isRefused = problems.count > before
        var policy = TokenPolicy(
            issuer: issuer, audiences: audiences(),
            lifetime: duration(
                "SALTERN_TOKEN_LIFETIME", in: TokenPolicy.lifetimes, default: TokenPolicy.defaultLifetime))
        let path = text("SALTERN_SIGNING_KEY_FILE", orNothing: "none")
        guard issuer != nil else {
            if path != nil, !isRefused { note("SALTERN_SIGNING_KEY_FILE needs SALTERN_TOKEN_ISSUER") }
            return (policy, nil)
        }
        if policy.audiences.isEmpty { note("SALTERN_TOKEN_ISSUER needs SALTERN_TOKEN_AUDIENCES, such as billing") }
        guard let path else {
            note("SALTERN_TOKEN_ISSUER needs SALTERN_SIGNING_KEY_FILE; saltern signing-key create makes one")
            return (policy, nil)
        }
        let file = SigningKeyFile(path: path)
        do throws(CommandFailure) {
            policy.keys = try file.read()
        } catch {
            for message in error.messages { note("SALTERN_SIGNING_KEY_FILE: \(message)") }
        }
        return (policy, file)
    }

    private mutating func tokenIssuer() -> TokenIssuer? {
        let name = "SALTERN_TOKEN_ISSUER"
        guard let text = text(name, orNothing: "none") else { return nil }
        if let issuer = TokenIssuer(text) { return issuer }
        refuse(name, text, mustBe: "none, or the server's origin, such as https://sync.example.com")
        return nil
    }
}
