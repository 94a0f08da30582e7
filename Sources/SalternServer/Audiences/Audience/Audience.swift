/// A group of the operator's services that accepts identity tokens and shares one set of pairwise names.
public struct Audience: Sendable, Hashable {
    public let name: AudienceName
    /// True if its tokens contain the account's identifier.
    public let seesAccountID: Bool
    /// True if its tokens contain the userid.
    public let seesUserid: Bool

    public init(_ name: AudienceName, seesAccountID: Bool = false, seesUserid: Bool = false) {
        self.name = name
        self.seesAccountID = seesAccountID
        self.seesUserid = seesUserid
    }

    /// Reads `billing`, `billing=account`, `billing=userid` or `billing=account+userid`; nil for anything else.
    public init?(_ text: String) {
        let parts = text.split(separator: "=", omittingEmptySubsequences: false)
        guard let name = AudienceName(String(parts[0])), parts.count <= 2 else { return nil }
        let options = parts.count == 1 ? [] : parts[1].split(separator: "+", omittingEmptySubsequences: false)
        guard options.allSatisfy({ $0 == "account" || $0 == "userid" }), Set(options).count == options.count else {
            return nil
        }
        self.init(name, seesAccountID: options.contains("account"), seesUserid: options.contains("userid"))
    }
}

/// The name of an audience.
public typealias AudienceName = OperatorName<Audience>
