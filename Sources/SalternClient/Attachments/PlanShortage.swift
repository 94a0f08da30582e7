/// A limit of a plan or of this device that is exceeded, with the amounts needed and free.
public struct PlanShortage: Error, Hashable, Sendable {
    /// The limits that can be exceeded.
    public enum Limit: String, Sendable {
        /// The number of items.
        case items
        /// Sealed bytes of one item, title and body together.
        case itemBytes
        /// Sealed bytes of all items.
        case bytes
        /// Sealed bytes of attachments that wait on this device (``AttachmentStorage/waitingByteLimit``). The limit is
        /// not part of the plan.
        case waitingBytes
    }

    /// The limit that is exceeded. It has the unit of ``needed`` and ``free``.
    public let limit: Limit
    /// The additional number of items or bytes that is needed; more than ``free``.
    public let needed: Int64
    /// The number of items or bytes that is free.
    public let free: Int64

    /// - Returns: nil when there is enough room.
    init?(_ limit: Limit, needed: Int64, free: Int64) {
        guard needed > free else { return nil }
        self.limit = limit
        self.needed = needed
        self.free = max(free, 0)
    }

    /// Describes an item that is longer than a plan or a batch allows.
    init?(itemOf needed: Int64, allowed: Int64) {
        self.init(.itemBytes, needed: needed, free: min(allowed, PlanRoom.itemByteLimit))
    }
}

/// The unused part of a plan.
struct PlanRoom: Hashable, Sendable {
    var items: Int64
    var itemBytes: Int64
    var bytes: Int64

    init(_ plan: ItemUsage) {
        items = Self.left(plan.limits.items, plan.usage.items)
        itemBytes = min(plan.limits.itemBytes, Self.itemByteLimit)
        bytes = Self.left(plan.limits.bytes, plan.usage.bytes)
    }

    /// Returns the unused part of a limit, at least 0, for any numbers that a server may send.
    private static func left(_ limit: Int64, _ used: Int64) -> Int64 {
        let (left, isTooFar) = limit.subtractingReportingOverflow(used)
        if isTooFar { return limit < 0 ? 0 : .max }
        return max(left, 0)
    }

    /// The maximum number of sealed bytes of an item that fit in a batch, in base64 and beside the operation's other
    /// members.
    static let itemByteLimit = Int64(((SyncLimits().batchBytes - (4 << 10)) / 4) * 3)

    /// Returns the limit that an attachment exceeds; nil when it fits.
    func shortage(_ size: AttachmentSize) -> PlanShortage? {
        PlanShortage(.bytes, needed: size.byteCount, free: bytes)
            ?? PlanShortage(.items, needed: size.itemCount, free: items)
            ?? PlanShortage(.itemBytes, needed: size.manifestByteCount, free: itemBytes)
    }

    /// Returns true when some limit here is larger than in `other`.
    func isLarger(than other: PlanRoom) -> Bool {
        items > other.items || itemBytes > other.itemBytes || bytes > other.bytes
    }
}

/// The part of a plan that a sealed attachment uses.
struct AttachmentSize: Hashable, Sendable {
    private var chunkCount: Int64 = 0
    private var chunkByteCount: Int64 = 0
    let manifestByteCount: Int64
    /// The sealed bytes of the replaced manifest; nil for none.
    private var replaced: Int64?

    /// The number of chunks, and one for the manifest's item if that is new.
    var itemCount: Int64 { chunkCount + (replaced == nil ? 1 : 0) }

    var byteCount: Int64 {
        let (sum, isTooMany) = chunkByteCount.addingReportingOverflow(max(manifestByteCount - (replaced ?? 0), 0))
        return isTooMany ? .max : sum
    }

    /// The sealed bytes of the chunks alone.
    var chunksByteCount: Int64 { chunkByteCount }

    /// Creates the size of a manifest, without chunks.
    /// - Parameter chunkCount: The number of chunks that the manifest names.
    init(chunkCount: Int64, properties: [String: String]) {
        // As JSON, with all characters escaped.
        let names = properties.reduce(0) { $0 + 6 * ($1.key.utf8.count + $1.value.utf8.count) + 8 }
        let (chunks, isTooMany) = chunkCount.multipliedReportingOverflow(by: Self.nameByteCount)
        let length = isTooMany ? Int64.max / 4 : min(chunks + Self.headByteCount + Int64(names), Int64.max / 4)
        manifestByteCount = Int64(SealedBox.sealedCount(Int(length)))
    }

    /// Creates the size of content of this length.
    init(of byteCount: Int64, chunkByteCount: Int, properties: [String: String]) {
        let (whole, rest) = byteCount.quotientAndRemainder(dividingBy: Int64(chunkByteCount))
        self.init(
            chunkCount: Attachment.chunkCount(of: byteCount, each: chunkByteCount), properties: properties)
        add(chunkByteCount, times: whole)
        if rest > 0 { add(Int(rest)) }
    }

    /// Adds chunks of this length.
    mutating func add(_ byteCount: Int, times: Int64 = 1) {
        let (bytes, isTooMany) = Int64(SealedBox.sealedCount(byteCount)).multipliedReportingOverflow(by: times)
        let (sum, isMore) = chunkByteCount.addingReportingOverflow(bytes)
        chunkByteCount = isTooMany || isMore ? .max : sum
        chunkCount += times
    }

    /// Returns the size when it replaces a manifest of this length, in sealed bytes; nil for none.
    func replacing(_ manifest: Int64?) -> AttachmentSize {
        var size = self
        size.replaced = manifest
        return size
    }

    /// Returns the size without this number of chunks, which may already be on the server.
    func without(_ count: Int64, of byteCount: Int) -> AttachmentSize {
        var rest = self
        let there = min(count, chunkCount)
        let (bytes, isTooMany) = Int64(SealedBox.sealedCount(byteCount)).multipliedReportingOverflow(by: there)
        rest.chunkCount -= there
        rest.chunkByteCount = isTooMany ? 0 : max(chunkByteCount - bytes, 0)
        return rest
    }

    /// The bytes of an id in a manifest, with quotation marks and a comma.
    private static let nameByteCount: Int64 = 39
    /// The bytes of a manifest's other members, and of a title.
    private static let headByteCount: Int64 = 1 << 10
}
