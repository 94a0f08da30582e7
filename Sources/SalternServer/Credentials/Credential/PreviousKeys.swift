internal import Cryptography
internal import Postgres

/// Remembers which key was replaced last, so that the retry of a change whose reply was lost is recognised by *both* of
/// its keys. To whoever guesses at keys such a request is one guess, as any other.
struct PreviousKeys: Sendable {
    /// The active key first; marks under the others are still good.
    private let keys: [HMACSHA256.Key]

    init(keys: [HMACSHA256.Key]) {
        self.keys = keys
    }

    /// What is stored of a verifier that is replaced: HMAC-SHA256 (RFC 2104) under a key derived from the master key.
    func mark(_ verifier: Verifier, of account: AccountID) -> PreviousKeyMark? {
        keys.first.map { Self.mark(verifier, account, $0) }
    }

    /// Whether a verifier is the one that was replaced last. Every key is tried, whichever fits.
    func fits(_ mark: PreviousKeyMark?, _ verifier: Verifier, of account: AccountID) -> Bool {
        keys.reduce(false) { fits, key in Self.mark(verifier, account, key) == mark || fits }
    }

    private static func mark(_ verifier: Verifier, _ account: AccountID, _ key: HMACSHA256.Key) -> PreviousKeyMark {
        PreviousKeyMark(key.authenticationCode(for: account.uuid.bytes + verifier.digest.bytes))
    }
}

/// The keyed hash of a verifier that was replaced. Opens nothing.
struct PreviousKeyMark: StoredDigest {
    let digest: SHA256Digest
}
