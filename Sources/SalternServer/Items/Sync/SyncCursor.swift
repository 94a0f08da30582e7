internal import Cryptography
internal import HTTPCore

/// How far a client has followed the changes of an account: opaque to clients.
struct SyncCursor: Sendable, Hashable {
    /// The client has seen every change up to this one.
    let revision: Int64
    /// The account's head (``AccountCounter/head(_:)``) when the client began with nothing, or ``revision`` once that is
    /// higher. A cursor whose floor is below the base was given out before time went back.
    ///
    /// A tombstone that is not newer concerns an item that the client has never seen, so the client misses nothing
    /// when it is purged: a first listing never expires half-way.
    let floor: Int64
    /// The collection that the client follows; nil for all of them. Of another one the cursor would pass by changes.
    let collection: CollectionName?

    /// Tells this kind of token, and its version, from any other.
    private static let tag: UInt8 = 0x02
    private static let byteCount = 17

    init(revision: Int64, floor: Int64, collection: CollectionName? = nil) {
        self.revision = revision
        self.floor = max(revision, floor)
        self.collection = collection
    }

    /// Reads ``text``.
    /// - Throws: ``SyncProblem/malformedCursor`` for anything that this server would not have written.
    init(_ text: String) throws(SyncProblem) {
        guard let bytes = try? Base64URL.decode(text.utf8), bytes.count >= Self.byteCount, bytes[0] == Self.tag else {
            throw .malformedCursor
        }
        let name = String(decoding: bytes[Self.byteCount...], as: UTF8.self)
        let collection = CollectionName(name)
        guard name.isEmpty || collection != nil else { throw .malformedCursor }
        let (revision, floor) = bytes.withUnsafeBytes { bytes in
            (
                Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 1, as: Int64.self)),
                Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 9, as: Int64.self))
            )
        }
        guard revision >= 0, floor >= revision else { throw .malformedCursor }
        self.init(revision: revision, floor: floor, collection: collection)
    }

    /// The cursor as clients get it.
    var text: String {
        var bytes = [Self.tag]
        bytes.reserveCapacity(Self.byteCount)
        withUnsafeBytes(of: revision.bigEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: floor.bigEndian) { bytes.append(contentsOf: $0) }
        return Base64URL.encodeToString(bytes + Array((collection?.name ?? "").utf8))
    }
}

/// Why changes cannot be listed.
enum SyncProblem: ProblemConvertible {
    /// The text is no cursor of this server, or of another listing.
    case malformedCursor
    /// Tombstones that the client has not seen were purged, or the database has been restored since the cursor.
    case cursorExpired

    var problem: Problem {
        switch self {
        case .malformedCursor:
            Problem(
                .badRequest, "malformed_cursor",
                detail: "Send `cursor` exactly as in a reply and with the same `collection`, or omit it.",
                field: "since")
        case .cursorExpired:
            Problem(
                .gone, "cursor_expired",
                detail:
                    "The cursor has expired. List everything again without a cursor, and delete nothing because of it.")
        }
    }
}
