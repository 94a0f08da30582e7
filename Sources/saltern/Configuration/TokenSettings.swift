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

    /// Reads the policy for tokens. Without an issuer the server signs none.
    /// - Parameter file: The file of the signing keys.
    mutating func tokens(_ file: SigningKeyFile?) -> TokenPolicy {
        let audiences = audiences()
        let lifetime = duration(
            "SALTERN_TOKEN_LIFETIME", in: TokenPolicy.lifetimes, default: TokenPolicy.defaultLifetime)
        let issuer = tokenIssuer()
        if issuer != nil, audiences.isEmpty {
            note("SALTERN_TOKEN_ISSUER needs SALTERN_TOKEN_AUDIENCES, such as billing")
        }
        return TokenPolicy(
            issuer: issuer, keys: file.flatMap { signingKeys($0) }, audiences: audiences, lifetime: lifetime)
    }

    /// Reads the file of the signing keys, `SALTERN_SIGNING_KEY_FILE`. Nil if the server signs no tokens.
    mutating func signingKeyFile() -> SigningKeyFile? {
        let hasIssuer = text("SALTERN_TOKEN_ISSUER", orNothing: "none") != nil
        let path = text("SALTERN_SIGNING_KEY_FILE")
        switch (hasIssuer, path) {
        case (true, let path?): return SigningKeyFile(path: path)
        case (true, nil):
            note("SALTERN_TOKEN_ISSUER needs SALTERN_SIGNING_KEY_FILE; saltern signing-key create makes one")
        case (false, .some): note("SALTERN_SIGNING_KEY_FILE needs SALTERN_TOKEN_ISSUER")
        case (false, nil): break
        }
        return nil
    }

    private mutating func signingKeys(_ file: SigningKeyFile) -> SigningKeys? {
        do throws(CommandFailure) {
            return try file.read()
        } catch {
            for message in error.messages { note("SALTERN_SIGNING_KEY_FILE: \(message)") }
            return nil
        }
    }

    private mutating func tokenIssuer() -> TokenIssuer? {
        let name = "SALTERN_TOKEN_ISSUER"
        guard let text = text(name, orNothing: "none") else { return nil }
        if let issuer = TokenIssuer(text) { return issuer }
        refuse(name, text, mustBe: "none, or the server's origin, such as https://sync.example.com")
        return nil
    }
}
