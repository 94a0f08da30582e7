import HTTPCore
import SalternServer

/// Settings that slow down attackers, and the sources of client addresses.
extension Settings {
    /// Reads the rate limits of each client address: `SALTERN_RATE_LIMITS`.
    mutating func rateLimits() -> RateLimits {
        guard let text = text("SALTERN_RATE_LIMITS") else { return .standard }
        if let limits = RateLimits(text) { return limits }
        let classes = RateClass.allCases.map(\.rawValue).joined(separator: ", ")
        refuse(
            "SALTERN_RATE_LIMITS", text,
            mustBe: "on, off, or figures such as login=20/5,registration=10/0.5, a burst of 1 to 1000000 and 0.01 to "
                + "1000000 a second, for any of: \(classes)")
        return .standard
    }

    /// Reads the proxies with a trusted `X-Forwarded-For`: `SALTERN_TRUSTED_PROXIES`.
    mutating func trustedProxies() -> TrustedProxies { proxies("SALTERN_TRUSTED_PROXIES") }

    /// Reads the proxies that send a header of the PROXY protocol: `SALTERN_PROXY_PROTOCOL`.
    mutating func proxyProtocolSenders() -> TrustedProxies { proxies("SALTERN_PROXY_PROTOCOL") }

    private mutating func proxies(_ name: String) -> TrustedProxies {
        guard let text = text(name, orNothing: "none") else { return TrustedProxies() }
        var blocks: [AddressBlock] = []
        for entry in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let block = AddressBlock(String(entry.drop { $0 == " " })) else {
                refuse(
                    name, text,
                    mustBe: "none, or addresses and blocks such as 127.0.0.1,10.0.0.0/8,2001:db8::/32, with no bits "
                        + "set after a block's length")
                break
            }
            blocks.append(block)
        }
        return TrustedProxies(blocks)
    }
}
