public import Cryptography

/// The data key of a generation: 32 random bytes from which the keys of items, names and chunks are derived.
public struct GenerationKey: Sendable, Equatable {
    /// The size of a key, in bytes.
    public static let byteCount = 32

    /// The key.
    public let bytes: SecureBytes
    /// The id, which is that of a data key of an account.
    public let id: VaultKeyID

    /// The label of ids. Items of accounts have it too, without a zero at its end.
    private static let idLabel = "saltern-1 key id"

    /// Creates a key from 32 bytes.
    /// - Returns: nil for another number of bytes.
    public init?(_ bytes: SecureBytes) {
        guard bytes.count == Self.byteCount else { return nil }
        let id = HKDF.deriveKey(from: bytes, info: Self.idLabel.utf8, byteCount: VaultKeyID.byteCount)
        guard let id = VaultKeyID(id.withUnsafeBytes { [UInt8]($0) }) else { return nil }
        self.bytes = bytes
        self.id = id
    }

    /// Draws a key whose id no generation of the vault has.
    public static func random(for log: MembershipLog? = nil) -> GenerationKey {
        while true {
            guard let key = GenerationKey(SecureRandom.secureBytes(byteCount)) else {
                preconditionFailure("32 bytes are a key")
            }
            if log?.generation(withKey: key.id) == nil { return key }
        }
    }

    /// Compares in constant time.
    public static func == (left: GenerationKey, right: GenerationKey) -> Bool { left.bytes == right.bytes }

    func commitment(_ number: GenerationNumber) -> [UInt8] {
        HMACSHA256.authenticationCode(for: VaultLabel.generation.text(number.bytes), using: bytes).bytes
    }

    /// The key from which the ids of chunks are derived whose manifest names this generation.
    public var chunkIDKey: SecureBytes { VaultLabel.chunkID.derive(bytes) }

    // MARK: The previous key

    /// The size of a sealed previous key.
    public static let sealedPreviousByteCount = 12 + byteCount + AESGCM.tagByteCount

    /// Seals the key of the generation before for the holders of this one: nonce (12) ‖ ciphertext (32) ‖ tag (16).
    /// - Parameter number: The number of this generation.
    public func sealPrevious(
        _ previous: GenerationKey, of vault: VaultID, number: GenerationNumber
    ) throws(AESGCM.Failure) -> [UInt8] {
        try sealPrevious(previous, of: vault, number: number, nonce: SecureRandom.bytes(12))
    }

    /// Seals with the caller's nonce. Only for test vectors.
    func sealPrevious(
        _ previous: GenerationKey, of vault: VaultID, number: GenerationNumber, nonce: [UInt8]
    ) throws(AESGCM.Failure) -> [UInt8] {
        let key = VaultLabel.previousKey.derive(bytes, vault.bytes, number.bytes)
        return try AESGCM.seal(previous.bytes, using: key, uniqueNonce: nonce)
    }

    /// Opens the key of the generation before.
    /// - Returns: nil unless it is the key that `generation` describes.
    public func openPrevious(_ sealed: [UInt8], of vault: VaultID, _ generation: Generation) -> GenerationKey? {
        guard let number = generation.number.next else { return nil }
        let key = VaultLabel.previousKey.derive(bytes, vault.bytes, number.bytes)
        guard let opened = try? AESGCM.open(sealed, using: key), let previous = GenerationKey(opened),
            generation.describes(previous)
        else { return nil }
        return previous
    }
}

/// The keys of generations that a member has.
public struct GenerationKeys: Sendable {
    /// The reason for which keys are missing.
    public enum Failure: Error, Hashable, Sendable {
        /// The key is not that of the generation.
        case wrongKey(GenerationNumber)
        /// The log has no such generation.
        case unknownGeneration(GenerationNumber)
    }

    private var keys: [GenerationNumber: GenerationKey] = [:]

    /// Creates an empty set.
    public init() {}

    /// Returns the key of a generation.
    public subscript(_ number: GenerationNumber) -> GenerationKey? { keys[number] }

    /// Returns the key with an id, in the log's order.
    public func key(_ id: VaultKeyID) -> GenerationKey? { keys.values.first { $0.id == id } }

    /// The numbers, in ascending order.
    public var numbers: [GenerationNumber] { keys.keys.sorted() }

    /// Adds the key of a generation.
    /// - Throws: ``Failure`` unless the log describes it.
    public mutating func insert(
        _ key: GenerationKey, _ number: GenerationNumber, _ log: MembershipLog
    ) throws(Failure) {
        guard let generation = log.generation(number) else { throw .unknownGeneration(number) }
        guard generation.describes(key) else { throw .wrongKey(number) }
        keys[number] = key
    }

    /// Opens earlier keys, from the latest to the first, and keeps those that exist already.
    /// - Parameter sealed: Of a generation, the key before it as ``GenerationKey/sealPrevious(_:of:number:)`` seals it.
    /// - Returns: The generations whose previous key is missing or wrong. A manager that has it can seal it again.
    public mutating func openPrevious(_ sealed: [GenerationNumber: [UInt8]], _ log: MembershipLog) -> [GenerationNumber]
    {
        var broken: [GenerationNumber] = []
        for (earlier, later) in zip(log.generations, log.generations.dropFirst()).reversed()
        where keys[earlier.number] == nil {
            guard let key = keys[later.number], let box = sealed[later.number],
                let previous = key.openPrevious(box, of: log.vault, earlier)
            else {
                broken.append(later.number)
                continue
            }
            keys[earlier.number] = previous
        }
        return broken.reversed()
    }
}

/// The key of a generation, sealed for one member:
///
///     ephemeral public key (65) ‖ ciphertext (32) ‖ tag (16)
///
/// The key is `HKDF(ECDH, label ‖ vault ‖ generation's number ‖ member ‖ ephemeral ‖ agreement key)` and seals once, so
/// the nonce is zeros. Any manager can make a lost box again: it is right when the key fits the commitment in the log.
public enum GenerationBox {
    /// The size of a box.
    public static let byteCount = P256.PublicKey.byteCount + GenerationKey.byteCount + AESGCM.tagByteCount

    private static let nonce = [UInt8](repeating: 0, count: 12)

    /// The reason for which there is no box.
    public enum Failure: Error, Hashable, Sendable {
        /// The platform's library failed.
        case library
        /// The box was not made for this member and generation, or was changed.
        case notAuthentic
        /// The box contains another key than the log names. Its author is dishonest, or its device is defective.
        case wrongKey
    }

    /// Seals a key for a member.
    public static func seal(
        _ key: GenerationKey, _ number: GenerationNumber, for member: MemberID, _ agreementKey: P256.PublicKey,
        of vault: VaultID
    ) throws(Failure) -> [UInt8] {
        guard let ephemeral = try? P256.PrivateKey.generate() else { throw .library }
        return try seal(key, number, for: member, agreementKey, of: vault, ephemeral: ephemeral)
    }

    /// Seals with the caller's ephemeral key. Only for test vectors: a key that is used twice reveals both contents.
    static func seal(
        _ key: GenerationKey, _ number: GenerationNumber, for member: MemberID, _ agreementKey: P256.PublicKey,
        of vault: VaultID, ephemeral: P256.PrivateKey
    ) throws(Failure) -> [UInt8] {
        guard let secret = try? ephemeral.sharedSecret(with: agreementKey) else { throw .library }
        let boxKey = Self.key(secret, vault, number, member, ephemeral.publicKey, agreementKey)
        guard let sealed = try? AESGCM.seal(key.bytes, using: boxKey, uniqueNonce: nonce) else { throw .library }
        return ephemeral.publicKey.bytes + sealed.dropFirst(nonce.count)
    }

    /// Opens a member's box.
    public static func open(
        _ box: [UInt8], _ generation: Generation, for member: MemberID, _ keys: MemberPrivateKeys, of vault: VaultID
    ) throws(Failure) -> GenerationKey {
        guard box.count == byteCount,
            let ephemeral = try? P256.PublicKey(Array(box.prefix(P256.PublicKey.byteCount))),
            let secret = try? keys.agreement.sharedSecret(with: ephemeral)
        else { throw .notAuthentic }
        let boxKey = key(secret, vault, generation.number, member, ephemeral, keys.publicKeys.agreement)
        let sealed = nonce + box.dropFirst(P256.PublicKey.byteCount)
        guard let opened = try? AESGCM.open(sealed, using: boxKey), let key = GenerationKey(opened) else {
            throw .notAuthentic
        }
        guard generation.describes(key) else { throw .wrongKey }
        return key
    }

    private static func key(
        _ secret: SecureBytes, _ vault: VaultID, _ number: GenerationNumber, _ member: MemberID,
        _ ephemeral: P256.PublicKey, _ recipient: P256.PublicKey
    ) -> SecureBytes {
        VaultLabel.box.derive(
            secret, vault.bytes, number.bytes, member.bytes, ephemeral.bytes, recipient.bytes)
    }
}
