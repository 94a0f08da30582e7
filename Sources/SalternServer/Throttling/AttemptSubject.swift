internal import Cryptography
internal import Postgres

/// Whose failures are counted together: the keyed hash of a userid, of a device, of a session.
///
/// A hash, because people type passwords where names belong: what was typed is nowhere.
struct AttemptSubject: Sendable, Hashable {
    fileprivate let digest: SHA256Digest
}

extension AttemptSubject: PostgresValue, PostgresArrayElement {
    static var postgresType: PostgresType { .bytea }
    static var postgresArrayType: PostgresType { .byteaArray }

    func encode(to writer: inout ByteWriter) { digest.withUnsafeBytes { writer.write($0) } }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> AttemptSubject? {
        bytes.flatMap { SHA256Digest($0) }.map(AttemptSubject.init)
    }
}

/// Makes subjects, under a key that is derived from the installation's secret: the same on every node.
struct AttemptSubjects: Sendable {
    private let key: HMACSHA256.Key

    init(secret: DecoySecret) {
        let label = Array("saltern failed attempts".utf8)
        key = HMACSHA256.Key(HMACSHA256.authenticationCode(for: label, using: secret.bytes))
    }

    /// Log-ins of a userid from devices that are not known.
    func userid(_ userid: Userid) -> AttemptSubject { subject("userid", Array(userid.string.utf8)) }

    /// Log-ins of a known device.
    func device(_ device: KnownDevice) -> AttemptSubject { subject("device", device.identity) }

    /// Proofs of the present key within a session.
    func session(_ caller: Caller) -> AttemptSubject { session(of: caller.accountID, caller.tokenHash) }

    /// The same, of any session.
    func session(of accountID: AccountID, _ tokenHash: TokenHash) -> AttemptSubject {
        subject("session", accountID.uuid.bytes + tokenHash.digest.bytes)
    }

    /// Recoveries of a userid from devices that are not known.
    func recovery(_ userid: Userid) -> AttemptSubject { subject("recovery", Array(userid.string.utf8)) }

    /// Recoveries from a known device.
    func recovery(_ device: KnownDevice) -> AttemptSubject { subject("recovery device", device.identity) }

    private func subject(_ kind: String, _ name: [UInt8]) -> AttemptSubject {
        AttemptSubject(digest: key.authenticationCode(for: Array(kind.utf8) + [0] + name))
    }
}
