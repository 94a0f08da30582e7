internal import Cryptography
internal import HTTPCore
internal import Postgres

/// What requests lock or write, as the database's client is told: requests of one key take turns on a node, so whoever
/// holds an account or a share up holds up nobody else.
///
/// A request that locks several things names the one that others are most likely to hold: the account, wherever there is
/// one.
extension RequestKey {
    /// An account's rows.
    static func account(_ id: AccountID) -> RequestKey { RequestKey(.account, id.uuid) }

    /// The counters of a userid.
    static func counters(_ subject: AttemptSubject) -> RequestKey {
        RequestKey(.attemptSubject, hashing: subject.digest.bytes)
    }

    /// A userid that somebody takes.
    static func userid(_ userid: Userid) -> RequestKey { RequestKey(.userid, hashing: userid.string.utf8) }

    /// An invite that somebody uses up.
    static func invite(_ hash: InviteHash) -> RequestKey { RequestKey(.invite, hashing: hash.digest.bytes) }

    /// A share that is viewed, or has no account.
    static func share(_ id: ShareID) -> RequestKey { RequestKey(.share, hashing: id.bytes) }

    /// A share that is changed: then its account is locked first, if it has one.
    static func share(_ id: ShareID, of owner: AccountID?) -> RequestKey {
        if let owner, owner != .nobody { .account(owner) } else { .share(id) }
    }

    /// The use of a session.
    static func session(_ hash: TokenHash) -> RequestKey { RequestKey(.session, hashing: hash.digest.bytes) }

    /// The network that a client's requests come from: the address, or the /64 of IPv6.
    static func network(of client: ClientAddress) -> RequestKey {
        withUnsafeBytes(of: client.ip.network) { RequestKey(.address, hashing: $0) }
    }
}
