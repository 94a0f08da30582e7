internal import HTTPCore

/// Who may call a route of the caller's account without a session.
public enum GuestRule: Sendable, Equatable {
    case nobody
    /// Whoever shows a share's manage token.
    case managersOfShares
    /// Whoever shows no token at all, with bodies of so many bytes.
    case strangers(bodyLimit: Int)

    /// Whether a request with these fields comes from a guest.
    func admits(_ fields: RequestFields) -> Bool {
        switch self {
        case .nobody: false
        case .managersOfShares: PresentedManageToken(fields) != nil
        case .strangers: !fields.contains("authorization")
        }
    }

    /// Which of a guest's buckets pays.
    var rateClass: RateClass? {
        switch self {
        case .nobody: nil
        case .managersOfShares: .share
        case .strangers: .anonymousShare
        }
    }

    /// The longest body of a guest, in bytes, where the route takes `limit` of everybody else.
    func bodyLimit(_ limit: Int) -> Int {
        if case .strangers(let own) = self { min(own, limit) } else { limit }
    }
}
