internal import Cryptography
internal import Postgres

/// Recognises the password key that was replaced last. A repeated change, whose reply was lost, is identified by *both*
/// of its keys. For an attacker such a request is one guess like any other.
struct PreviousKeys: Sendable {
    /// The active key first. Marks under the others remain valid.
    private let keys: [HMACSHA256.Key]

    init(keys: [HMACSHA256.Key]) {
        self.keys = keys
    }

    /// Returns the mark of a replaced verifier: HMAC-SHA256 (RFC 2104) under a key derived from the master key.
    func mark(_ verifier: Verifier, of account: AccountID) -> PreviousKeyMark? {
        keys.first.map { Self.mark(verifier, account, $0) }
    }

    /// Returns true if the verifier is the one that was replaced last. All keys are tried, even after a match.
    func fits(_ mark: PreviousKeyMark?, _ verifier: Verifier, of account: AccountID) -> Bool {
        keys.reduce(false) { fits, key in Self.mark(verifier, account, key) == mark || fits }
    }

    private static func mark(_ verifier: Verifier, _ account: AccountID, _ key: HMACSHA256.Key) -> PreviousKeyMark {
        PreviousKeyMark(key.authenticationCode(for: account.uuid.bytes + verifier.digest.bytes))
    }
}

/// The keyed hash of a replaced verifier. It grants nothing.
struct PreviousKeyMark: StoredDigest {
    let digest: SHA256Digest
}
