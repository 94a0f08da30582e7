import HTTPCore
import SalternServer

/// What slows attackers down, and who says where they are.
extension Settings {
    /// How often one client address may do what: `SALTERN_RATE_LIMITS`.
    mutating func rateLimits() -> RateLimits {
        guard let text = text("SALTERN_RATE_LIMITS") else { return .standard }
        if let limits = RateLimits(text) { return limits }
        let classes = RateClass.allCases.map(\.rawValue).joined(separator: ", ")
        note(
            "SALTERN_RATE_LIMITS must be on, off, or figures such as login=20/5,registration=10/0.5, a burst and so many "
                + "a second for any of: \(classes)")
        return .standard
    }

    /// Whose `X-Forwarded-For` counts: `SALTERN_TRUSTED_PROXIES`.
    mutating func trustedProxies() -> TrustedProxies {
        guard let text = text("SALTERN_TRUSTED_PROXIES") else { return TrustedProxies() }
        var blocks: [AddressBlock] = []
        for entry in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let block = AddressBlock(String(entry.drop { $0 == " " })) else {
                note(
                    "SALTERN_TRUSTED_PROXIES must be addresses or blocks such as 127.0.0.1,10.0.0.0/8,2001:db8::/32, with "
                        + "no bits set behind a block's length")
                break
            }
            blocks.append(block)
        }
        return TrustedProxies(blocks)
    }
}
