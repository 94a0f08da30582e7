internal import Cryptography
internal import Postgres

/// The keyed hash of a userid whose failures are counted, registered or not.
///
/// A hash, because people type passwords into the userid's field: the typed text is stored nowhere.
struct AttemptSubject: StoredDigest, PostgresArrayElement {
    let digest: SHA256Digest
}

/// One of a userid's counters. It has at most eighteen at a time: its own, one for each of the account's sixteen slots,
/// and one that devices of the previous generation share.
struct AttemptCounter: Sendable, Hashable {
    let subject: AttemptSubject
    let place: AttemptPlace
}

/// The counter among those of a userid: the keyed hash of an account's slot and a generation.
struct AttemptPlace: StoredDigest, PostgresArrayElement {
    let digest: SHA256Digest

    /// The counter of attempts without a valid device token.
    static let stranger = AttemptPlace(.zero)

    /// Draws a place without failures.
    static func random() -> AttemptPlace { AttemptPlace(SHA256.hash(SecureRandom.bytes(SHA256Digest.byteCount))) }
}

/// Derives subjects and counters under a key from the installation's secret, equal on all nodes.
struct AttemptSubjects: Sendable {
    private let key: HMACSHA256.Key

    init(secret: DecoySecret) {
        let label = Array("saltern failed attempts".utf8)
        key = HMACSHA256.Key(HMACSHA256.authenticationCode(for: label, using: secret.bytes))
    }

    /// Returns the subject of a userid's failures.
    func userid(_ userid: Userid) -> AttemptSubject { AttemptSubject(code("userid", Array(userid.string.utf8))) }

    /// Returns the counter of attempts with a device token of the present generation.
    func slot(of device: KnownDevice) -> AttemptPlace { AttemptPlace(code("slot", device.identity)) }

    /// Returns the counter of attempts with any device token of the previous generation.
    func generation(of device: KnownDevice) -> AttemptPlace {
        AttemptPlace(code("generation", device.generationIdentity))
    }

    private func code(_ kind: String, _ name: [UInt8]) -> SHA256Digest {
        key.authenticationCode(for: Array(kind.utf8) + [0] + name)
    }
}
