public import Cryptography

/// The sealed format `saltern-1`:
///
///     version (1) ‖ key id (4) ‖ nonce (12) ‖ ciphertext ‖ tag (16)
///
/// AES-256-GCM under a separate key for each part of each item, `HKDF(data key, label ‖ part ‖ item id)`. The
/// additional data authenticates the kind and the place of the bytes, so that a server cannot exchange them:
///
///     "saltern-1" ‖ version ‖ part ‖ account id (16) ‖ item id (16) ‖ length of collection (2) ‖ collection
///
/// The plaintext contains its real length and its edit; zeros hide its length (``Padding``):
///
///     real length (4) ‖ edit number (8) ‖ SHA-256 of the edit before (32) ‖ content ‖ zeros
///
/// Numbers are big-endian.
public enum SealedBox {
    /// The kinds of sealed bytes.
    public enum Part: UInt8, Sendable {
        /// The title of an item.
        case title = 1
        /// The body of an item.
        case body = 2
        /// A chunk of an attachment.
        case chunk = 3
        /// The keyring of an account.
        case keyring = 4
        /// The keys of the recovery, sealed for the printed code.
        case recovery = 5
        /// The keys of a passkey, sealed under the output of its pseudo-random function.
        case passkey = 6
        /// The title of an item of a shared vault.
        case vaultTitle = 16
        /// The signed body of an item of a shared vault.
        case vaultBody = 17
        /// A chunk of an attachment in a shared vault.
        case vaultChunk = 18
    }

    /// The place of sealed bytes. They cannot be opened at another place.
    public struct Place: Hashable, Sendable {
        /// The part of the item that the box contains.
        public var part: Part
        /// The account. Zeros for a keyring: it is sealed before the server assigns the account's id, under a key that
        /// no other account has.
        public var account: AccountID
        /// The item. Zeros for a box that is not an item.
        public var item: ItemID
        /// The collection of the item; empty for a keyring.
        public var collection: String

        /// Creates the place of a box, which the box authenticates.
        public init(_ part: Part, account: AccountID, item: ItemID, collection: String) {
            self.part = part
            self.account = account
            self.item = item
            self.collection = collection
        }
    }

    /// The position of a version in the history of its item.
    public struct Edit: Hashable, Sendable {
        /// The number, from 1, which each edit increases by one. ``creating(afterHash:deletedAt:)`` continues it after
        /// a deletion.
        public var number: UInt64
        /// SHA-256 of the sealed bytes of the previous edit; zeros for the first.
        public var previous: [UInt8]

        /// Creates an edit.
        /// - Parameters:
        ///   - number: The number of the edit, from 1.
        ///   - previous: The SHA-256 of the sealed body before it, 32 bytes; zeros for the first edit.
        public init(number: UInt64, previous: [UInt8]) {
            self.number = number
            self.previous = previous
        }

        /// The first edit.
        public static let first = Edit(number: 1, previous: [UInt8](repeating: 0, count: 32))

        /// The highest number. Honest edits and deletions never reach it (``floor(of:)``).
        static let limit = UInt64(3) << 62

        /// Returns the number after another one, at most ``limit``. Received content may have any number.
        static func number(after number: UInt64) -> UInt64 { number < limit ? number + 1 : limit }

        /// Returns the edit after the one that is sealed in these bytes.
        public func next(after sealed: [UInt8]) -> Edit { next(afterHash: SHA256.hash(sealed).bytes) }

        /// Returns the edit after the one with this hash.
        func next(afterHash hash: [UInt8]) -> Edit { Edit(number: Self.number(after: number), previous: hash) }

        /// True for the first edit of an item that began as a copy of a version.
        var isCopy: Bool { number == 1 && previous != Self.first.previous }

        /// Returns the edit after this one, which creates the item again after its deletion.
        ///
        /// The device that deleted the item may have had later edits than this one. Every edit that was sent has a
        /// separate revision, so all of them have numbers below ``floor(of:)``.
        func creating(afterHash hash: [UInt8], deletedAt deletion: Revision?) -> Edit {
            var edit = next(afterHash: hash)
            if let deletion { edit.number = max(edit.number, Self.number(after: Self.floor(of: deletion))) }
            return edit
        }

        /// Returns a number that no edit before a deletion has: its revision times 1,024.
        static func floor(of deletion: Revision) -> UInt64 {
            // Honest servers do not reach 2^53, and a number must leave room for later ones.
            UInt64(min(max(deletion.number, 0), 1 << 53)) << 10
        }
    }

    /// The opened content of a box.
    public struct Content: Sendable {
        /// The edit that sealed the box.
        public let edit: Edit
        /// The opened content.
        public let content: SecureBytes
    }

    /// The reason for which a box was not opened.
    public enum Failure: Error, Hashable, Sendable {
        /// The bytes are not of this format.
        case malformed
        /// The keyring does not contain the data key.
        case unknownKey
        /// The key or the place is wrong, or the bytes were changed.
        case notAuthentic
        /// The content is too long for one box.
        case tooLong
    }

    /// The name of the format.
    public static let format = "saltern-1"
    /// The format, on this device only, of a version in a shared vault that was not judged. Nothing opens it.
    static let unjudgedFormat = "saltern-1-unjudged"
    /// The longest content, in bytes.
    public static let contentLimit = (1 << 30)

    private static let version: UInt8 = 1
    private static let headerCount = 5
    private static let nonceCount = 12
    private static let prefixCount = 44
    private static let overhead = headerCount + nonceCount + AESGCM.tagByteCount

    /// Returns the number of sealed bytes of `contentCount` bytes.
    public static func sealedCount(_ contentCount: Int) -> Int {
        overhead + Padding.paddedCount(prefixCount + contentCount)
    }

    /// Seals `content`.
    public static func seal(
        _ content: some ByteSource, _ edit: Edit, at place: Place, with key: DataKey
    ) throws(Failure) -> [UInt8] {
        try seal(content, edit, at: place, with: key, nonce: SecureRandom.bytes(nonceCount))
    }

    /// Seals with the caller's nonce. Only for test vectors: a nonce that is used twice reveals the key.
    static func seal(
        _ content: some ByteSource, _ edit: Edit, at place: Place, with key: DataKey, nonce: [UInt8]
    ) throws(Failure) -> [UInt8] {
        let plaintext = try padded(content, edit)
        let sealed: [UInt8]
        do throws(AESGCM.Failure) {
            sealed = try AESGCM.seal(
                plaintext, using: key.itemKey(place), uniqueNonce: nonce, authenticating: additionalData(place))
        } catch {
            throw .tooLong
        }
        return [version] + key.id.bytes + sealed
    }

    /// Returns the id of the data key in sealed bytes.
    /// - Throws: ``Failure/malformed`` for another format.
    public static func keyID(of sealed: [UInt8]) throws(Failure) -> DataKey.ID {
        guard sealed.count >= overhead + Padding.block, sealed[0] == version,
            Padding.isPadded(sealed.count - overhead), let id = DataKey.ID(bytes: sealed[1..<headerCount])
        else { throw .malformed }
        return id
    }

    /// Opens the result of ``seal(_:_:at:with:)``.
    public static func open(_ sealed: [UInt8], at place: Place, with key: DataKey) throws(Failure) -> Content {
        guard try keyID(of: sealed) == key.id else { throw .unknownKey }
        let plaintext: SecureBytes
        do throws(AESGCM.Failure) {
            plaintext = try AESGCM.open(
                sealed[headerCount...], using: key.itemKey(place), authenticating: additionalData(place))
        } catch {
            throw .notAuthentic
        }
        return try unpadded(plaintext)
    }

    static func additionalData(_ place: Place) -> [UInt8] {
        let collection = Array(place.collection.utf8)
        return Array(SealingLabels.box.utf8) + [version, place.part.rawValue] + place.account.bytes + place.item.bytes
            + UInt16(truncatingIfNeeded: collection.count).bigEndianBytes + collection
    }

    // MARK: Plaintext

    private static func padded(_ content: some ByteSource, _ edit: Edit) throws(Failure) -> SecureBytes {
        try content.withContiguousBytes { content throws(Failure) in
            guard content.count <= contentLimit, edit.previous.count == 32 else { throw .tooLong }
            let prefix = UInt32(content.count).bigEndianBytes + edit.number.bigEndianBytes + edit.previous
            return SecureBytes(count: Padding.paddedCount(prefix.count + content.count)) { plaintext in
                plaintext.copyBytes(from: prefix)
                UnsafeMutableRawBufferPointer(rebasing: plaintext[prefix.count...]).copyMemory(from: content)
            }
        }
    }

    private static func unpadded(_ plaintext: SecureBytes) throws(Failure) -> Content {
        try plaintext.withUnsafeBytes { bytes throws(Failure) in
            guard bytes.count >= prefixCount else { throw .malformed }
            let count = Int(UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)))
            let number = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt64.self))
            let end = prefixCount + count
            guard end <= bytes.count, Padding.paddedCount(end) == bytes.count,
                bytes[end...].allSatisfy({ $0 == 0 })
            else { throw .malformed }
            return Content(
                edit: Edit(number: min(number, Edit.limit), previous: [UInt8](bytes[12..<prefixCount])),
                content: SecureBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[prefixCount..<end])))
        }
    }
}

extension FixedWidthInteger {
    /// The bytes, the most significant first.
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { [UInt8]($0) } }
}

/// Rounds the length of sealed bytes to reveal less of it. Lengths up to 1 KiB become multiples of 64.
///
/// Longer ones follow PADMÉ (Nikitin et al., "Reducing Metadata Leakage from Encrypted Files and Communication with
/// PURBs", 2019, section 4). It adds at most 12 %, and reveals only O(log log n) bits about the length.
enum Padding {
    static let block = 64
    private static let small = 1_024

    /// Returns the padded length of `count` bytes.
    static func paddedCount(_ count: Int) -> Int {
        if count <= small { return max(block, (count + block - 1) / block * block) }
        let exponent = Int.bitWidth - 1 - count.leadingZeroBitCount
        let kept = Int.bitWidth - exponent.leadingZeroBitCount
        let mask = (1 << (exponent - kept)) - 1
        return (count + mask) & ~mask
    }

    /// Returns true for a possible padded length.
    static func isPadded(_ count: Int) -> Bool { count >= block && paddedCount(count) == count }
}
