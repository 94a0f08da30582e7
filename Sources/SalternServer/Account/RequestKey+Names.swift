internal import Cryptography
internal import HTTPCore
internal import Postgres

/// The rows that requests lock or write, as keys of the database's client. Requests with one key queue on a node, so a
/// held account or share delays no others.
///
/// A request that locks several rows uses the key with the most contention: the account, if there is one.
extension RequestKey {
    static func account(_ id: AccountID) -> RequestKey { RequestKey(.account, id.uuid) }

    static func counters(_ subject: AttemptSubject) -> RequestKey {
        RequestKey(.attemptSubject, hashing: subject.digest.bytes)
    }

    /// The key of a registration's or a change's new userid.
    static func userid(_ userid: Userid) -> RequestKey { RequestKey(.userid, hashing: userid.string.utf8) }

    /// The key of an invite that is used up.
    static func invite(_ hash: InviteHash) -> RequestKey { RequestKey(.invite, hashing: hash.digest.bytes) }

    /// The key of a share that is viewed, or has no account.
    static func share(_ id: ShareID) -> RequestKey { RequestKey(.share, hashing: id.bytes) }

    /// The key of a share that is changed: its account, which is locked first, or the share itself.
    static func share(_ id: ShareID, of owner: AccountID?) -> RequestKey {
        if let owner, owner != .nobody { .account(owner) } else { .share(id) }
    }

    /// The key of recording a session's use.
    static func session(_ hash: TokenHash) -> RequestKey { RequestKey(.session, hashing: hash.digest.bytes) }

    /// The key of the network that a request comes from: the address, or the /64 of IPv6.
    static func network(of client: ClientAddress) -> RequestKey {
        withUnsafeBytes(of: client.ip.network) { RequestKey(.address, hashing: $0) }
    }
}
