internal import HTTPCore

/// Callers without a session on a route of the caller's account.
public enum GuestRule: Sendable, Equatable {
    case nobody
    /// Callers with a share's manage token.
    case managersOfShares
    /// Callers without any token, with a limit of the body in bytes.
    case strangers(bodyLimit: Int)

    /// Returns true if a request with these fields comes from a guest.
    func admits(_ fields: RequestFields) -> Bool {
        switch self {
        case .nobody: false
        case .managersOfShares: PresentedManageToken(fields) != nil
        case .strangers: !fields.contains("authorization")
        }
    }

    /// The bucket that a guest's request takes from.
    var rateClass: RateClass? {
        switch self {
        case .nobody: nil
        case .managersOfShares: .share
        case .strangers: .anonymousShare
        }
    }

    /// Returns the maximum body of a guest in bytes, on a route whose own limit is `limit`.
    func bodyLimit(_ limit: Int) -> Int {
        if case .strangers(let own) = self { min(own, limit) } else { limit }
    }
}
