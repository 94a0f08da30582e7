internal import Cryptography
internal import Postgres

/// A device from which the right key of an account was shown before. It is one of sixteen slots, which is no name: a new
/// device gets any of them, several may have the same, and nothing is stored.
///
/// Its failures are counted by themselves, so that no stranger's can keep it out.
struct KnownDevice: Sendable, Equatable {
    let accountID: AccountID
    /// Below ``slotCount``.
    let slot: UInt8
    /// Which tokens of the account are the present ones: see ``FindLogin/Row/deviceGeneration``.
    let generation: Int64

    static let slotCount: UInt8 = 16
    /// For so long tokens of the generation before count by themselves, all together.
    static let graceOfEarlierGeneration = Duration.seconds(7 * 86_400)

    /// A device that was not known so far.
    static func new(of accountID: AccountID, generation: Int64) -> KnownDevice {
        KnownDevice(accountID: accountID, slot: .random(in: 0..<slotCount), generation: generation)
    }

    /// The device that a session counts for. A session has one slot however often it asks, so a stolen one is worth no
    /// more than one device.
    static func ofSession(_ accountID: AccountID, _ tokenHash: TokenHash, generation: Int64) -> KnownDevice {
        KnownDevice(
            accountID: accountID, slot: tokenHash.digest.withUnsafeBytes { $0[0] } % slotCount, generation: generation)
    }

    /// The bytes that tell slot, account and generation from any other.
    var identity: [UInt8] { accountID.uuid.bytes + [slot] + Self.bytes(of: generation) }

    /// The bytes that tell account and generation from any other.
    var generationIdentity: [UInt8] { accountID.uuid.bytes + Self.bytes(of: generation) }

    /// The same device, in another generation.
    func inGeneration(_ generation: Int64) -> KnownDevice {
        KnownDevice(accountID: accountID, slot: slot, generation: generation)
    }

    private static func bytes(of generation: Int64) -> [UInt8] {
        withUnsafeBytes(of: generation.bigEndian) { [UInt8]($0) }
    }
}
