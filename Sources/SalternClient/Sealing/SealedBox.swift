public import Cryptography

/// The sealed format `saltern-1`:
///
///     version (1) ‖ key id (4) ‖ nonce (12) ‖ ciphertext ‖ tag (16)
///
/// AES-256-GCM under a key of its own for each part of each item, `HKDF(data key, label ‖ part ‖ item id)`. What is
/// authenticated along says what the bytes are and where they belong, so that a server cannot pass one thing for another:
///
///     "saltern-1" ‖ version ‖ part ‖ account id (16) ‖ item id (16) ‖ length of collection (2) ‖ collection
///
/// The plaintext says how long it really is and which edit it is of; zeros hide its length (``Padding``):
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
    }

    /// The place that sealed bytes belong to. They open at no other place.
    public struct Place: Hashable, Sendable {
        /// The part of the item that the box holds.
        public var part: Part
        /// All zeros for a keyring: it is sealed before the server gives the account its id, under a key that no other
        /// account has.
        public var account: AccountID
        /// All zeros for what is no item.
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
        /// 1 for the first, one more for each that follows; see ``creating(after:deletedAt:)`` for what comes after a
        /// deletion.
        public var number: UInt64
        /// SHA-256 of the sealed bytes of the edit before; zeros for the first.
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

        /// The highest number. It is beyond what any number of honest edits and deletions comes to (``floor(of:)``).
        static let limit = UInt64(3) << 62

        /// Returns the number after another one, at most ``limit``. Content that came from elsewhere may have any number.
        static func number(after number: UInt64) -> UInt64 { number < limit ? number + 1 : limit }

        /// The edit after the one that is sealed in these bytes.
        public func next(after sealed: [UInt8]) -> Edit {
            Edit(number: Self.number(after: number), previous: SHA256.hash(sealed).bytes)
        }

        /// The first edit of an item that begins as a copy of the version that is sealed in these bytes.
        static func copy(of sealed: [UInt8]) -> Edit { Edit(number: 1, previous: SHA256.hash(sealed).bytes) }

        /// Whether an item begins with it as a copy of a version.
        var isCopy: Bool { number == 1 && previous != Self.first.previous }

        /// Whether it was made from the edit that is sealed in these bytes.
        func follows(_ sealed: [UInt8]) -> Bool { previous == SHA256.hash(sealed).bytes }

        /// The edit after this one, which creates the item again after its deletion.
        ///
        /// Whoever deleted it may have known later edits than this device. Every edit that was sent has a revision of its
        /// own, so all of them have numbers below ``floor(of:)``.
        func creating(after sealed: [UInt8], deletedAt deletion: Revision?) -> Edit {
            var edit = next(after: sealed)
            if let deletion { edit.number = max(edit.number, Self.number(after: Self.floor(of: deletion))) }
            return edit
        }

        /// A number that no edit from before a deletion has: its revision times 1,024.
        static func floor(of deletion: Revision) -> UInt64 {
            // Beyond 2^53 no server counts honestly, and a number has to have room for those that follow.
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

    /// Why a box was not opened.
    public enum Failure: Error, Hashable, Sendable {
        /// Not of this format.
        case malformed
        /// Sealed under a data key that the keyring does not have.
        case unknownKey
        /// Another key, another place, or changed bytes.
        case notAuthentic
        /// More bytes than one box can have.
        case tooLong
    }

    /// The name of the format.
    public static let format = "saltern-1"
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

    /// Seals under a nonce of the caller: for vectors only, because one that is used twice gives the key away.
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

    /// The id of the data key that sealed bytes name.
    /// - Throws: ``Failure/malformed`` for anything but this format.
    public static func keyID(of sealed: [UInt8]) throws(Failure) -> DataKey.ID {
        guard sealed.count >= overhead + Padding.block, sealed[0] == version,
            Padding.isPadded(sealed.count - overhead), let id = DataKey.ID(bytes: sealed[1..<headerCount])
        else { throw .malformed }
        return id
    }

    /// Opens what ``seal(_:_:at:with:)`` returned.
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
