internal import Cryptography
internal import Postgres

/// A userid whose failures are counted, known or not: its keyed hash.
///
/// A hash, because people type passwords where names belong: what was typed is nowhere.
struct AttemptSubject: StoredDigest, PostgresArrayElement {
    let digest: SHA256Digest
}

/// One of the counters of a userid, eighteen at most at a time: its own, one for each of the sixteen slots of its account,
/// and one that the devices of the generation before share.
struct AttemptCounter: Sendable, Hashable {
    let subject: AttemptSubject
    let place: AttemptPlace
}

/// Which of the counters of a userid: the keyed hash of a slot of an account and a generation.
struct AttemptPlace: StoredDigest, PostgresArrayElement {
    let digest: SHA256Digest

    /// Whoever shows no token of a device.
    static let stranger = AttemptPlace(.zero)

    /// A place where nothing is ever counted.
    static func random() -> AttemptPlace { AttemptPlace(SHA256.hash(SecureRandom.bytes(SHA256Digest.byteCount))) }
}

/// Makes subjects and counters, under a key that is derived from the installation's secret: the same on every node.
struct AttemptSubjects: Sendable {
    private let key: HMACSHA256.Key

    init(secret: DecoySecret) {
        let label = Array("saltern failed attempts".utf8)
        key = HMACSHA256.Key(HMACSHA256.authenticationCode(for: label, using: secret.bytes))
    }

    /// The failures of a userid.
    func userid(_ userid: Userid) -> AttemptSubject { AttemptSubject(code("userid", Array(userid.string.utf8))) }

    /// Where attempts with the token of a device of the present generation are counted.
    func slot(of device: KnownDevice) -> AttemptPlace { AttemptPlace(code("slot", device.identity)) }

    /// Where attempts with any token of the generation before are counted, given one of them.
    func generation(of device: KnownDevice) -> AttemptPlace {
        AttemptPlace(code("generation", device.generationIdentity))
    }

    private func code(_ kind: String, _ name: [UInt8]) -> SHA256Digest {
        key.authenticationCode(for: Array(kind.utf8) + [0] + name)
    }
}
