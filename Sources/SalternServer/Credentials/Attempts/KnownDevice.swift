internal import Cryptography
internal import Postgres

/// A device that has presented an account's right key before, as one of sixteen slots.
///
/// A slot identifies no device: new devices draw one at random, several may share it, and nothing is stored. Its
/// failures are counted separately, so strangers' failures do not block it.
struct KnownDevice: Sendable, Equatable {
    let accountID: AccountID
    /// Below ``slotCount``.
    let slot: UInt8
    /// The generation of the account's tokens: see ``FindLogin/Row/deviceGeneration``.
    let generation: Int64

    static let slotCount: UInt8 = 16
    /// The period in which tokens of the previous generation share a counter of their own.
    static let graceOfEarlierGeneration = Duration.seconds(7 * 86_400)

    /// Draws the slot of a new device.
    static func new(of accountID: AccountID, generation: Int64) -> KnownDevice {
        KnownDevice(accountID: accountID, slot: .random(in: 0..<slotCount), generation: generation)
    }

    /// Returns the device that a session counts for. It is always the same slot, so a stolen session allows no more
    /// guesses than one device.
    static func ofSession(_ accountID: AccountID, _ tokenHash: TokenHash, generation: Int64) -> KnownDevice {
        KnownDevice(
            accountID: accountID, slot: tokenHash.digest.withUnsafeBytes { $0[0] } % slotCount, generation: generation)
    }

    /// The bytes that identify slot, account and generation.
    var identity: [UInt8] { accountID.uuid.bytes + [slot] + Self.bytes(of: generation) }

    /// The bytes that identify account and generation.
    var generationIdentity: [UInt8] { accountID.uuid.bytes + Self.bytes(of: generation) }

    /// Returns the same device in another generation.
    func inGeneration(_ generation: Int64) -> KnownDevice {
        KnownDevice(accountID: accountID, slot: slot, generation: generation)
    }

    private static func bytes(of generation: Int64) -> [UInt8] {
        withUnsafeBytes(of: generation.bigEndian) { [UInt8]($0) }
    }
}
