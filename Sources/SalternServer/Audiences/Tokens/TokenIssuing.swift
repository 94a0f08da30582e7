internal import HTTPCore

/// Signs and reads tokens. Absent if the server has no issuer.
struct TokenIssuing: Sendable {
    let issuer: TokenIssuer
    let keys: SigningKeys
    private let pairwiseKey: PairwiseKey?

    init?(_ parts: Dependencies) {
        guard let issuer = parts.configuration.tokens.issuer, let keys = parts.configuration.tokens.keys else {
            return nil
        }
        self.issuer = issuer
        self.keys = keys
        pairwiseKey = parts.installation.pairwiseKey
    }

    /// The key of pairwise names.
    func pairwise() throws(TokensUnavailable) -> PairwiseKey {
        guard let pairwiseKey else { throw .pairwiseKey }
        return pairwiseKey
    }
}
