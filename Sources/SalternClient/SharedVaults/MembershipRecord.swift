internal import Cryptography
internal import Foundation
internal import VaultLog

/// The keys of this account in one shared vault: an ordinary item of the account, with the vault's id as its id.
///
/// It is written before a vault is founded or joined, so that no crash separates a membership from its keys. Versions
/// of several devices merge without a question: keys and heads by union.
struct MembershipRecord: Codable, Sendable {
    /// A pair of private keys, each in the form of X9.63.
    struct KeyPair: Codable, Sendable {
        let signing: SecretBytes
        let agreement: SecretBytes
        /// The keys; nil for bytes that are none. Stored, because a key's point takes some time to compute.
        let privateKeys: MemberPrivateKeys?

        private enum CodingKeys: String, CodingKey { case signing, agreement }
    }

    /// A known key of the vault.
    struct KnownKey: Codable, Sendable, Equatable {
        let number: UInt64
        let key: SecretBytes
    }

    /// A head that a device of this account has seen.
    struct KnownHead: Codable, Sendable, Hashable {
        let number: UInt64
        let hash: Base64Bytes
    }

    /// The collection of these items, which lists of items omit.
    static let collection = "saltern-vaults"
    static let presentSchema = 1
    private static let secretMembers = ["signing", "agreement", "key"]
    /// More keys than a log permits for one member.
    private static let keyLimit = 256
    /// The maximum number of heads of different histories.
    private static let headLimit = 8
    /// The longest label, in bytes.
    static let labelLimit = 64

    var schema = Self.presentSchema
    /// This account's id inside of the vault. The log has the last word: see ``SharedVaultState/own``.
    var memberId: MemberID
    /// All pairs of keys, the latest last.
    var keys: [KeyPair]
    /// The vault's keys by number. One leaves the list when sealed previous keys lead to it from a later one.
    var generations: [KnownKey] = []
    /// The highest heads that this account's devices have seen, one of each history.
    var heads: [KnownHead] = []
    /// The labels that this account gave to its invitations.
    var labels: [InvitationID: String] = [:]
    /// The vault's name at the founding or join, and then the last one by a manager.
    var name: String?
    /// True when a person has removed the vault from this account. Then there are no keys. The item stays, because a
    /// server can invent a tombstone, but not this.
    var isForgotten = false
    /// The member as which a device of this account has left the vault. A later membership has another id.
    var left: MemberID?

    private enum CodingKeys: String, CodingKey {
        case schema, memberId, keys, generations, heads, labels, name, left
        case isForgotten = "forgotten"
    }

    init(memberId: MemberID, _ keys: MemberPrivateKeys, name: String?) {
        self.memberId = memberId
        self.keys = [KeyPair(keys)]
        self.name = name
    }

    /// The record of a vault that was removed from the account.
    init(forgotten memberId: MemberID) {
        self.memberId = memberId
        keys = []
        isForgotten = true
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        schema = try container.decode(Int.self, forKey: .schema)
        memberId = try container.decode(MemberID.self, forKey: .memberId)
        keys = try container.decode([KeyPair].self, forKey: .keys)
        generations = try container.decodeIfPresent([KnownKey].self, forKey: .generations) ?? []
        heads = try container.decodeIfPresent([KnownHead].self, forKey: .heads) ?? []
        name = try container.decodeIfPresent(String.self, forKey: .name)
        isForgotten = try container.decodeIfPresent(Bool.self, forKey: .isForgotten) ?? false
        left = try container.decodeIfPresent(MemberID.self, forKey: .left)
        let texts = try container.decodeIfPresent([String: String].self, forKey: .labels) ?? [:]
        for (text, label) in texts { if let id = InvitationID(text) { labels[id] = label } }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(schema, forKey: .schema)
        try container.encode(memberId, forKey: .memberId)
        try container.encode(keys, forKey: .keys)
        if !generations.isEmpty { try container.encode(generations, forKey: .generations) }
        if !heads.isEmpty { try container.encode(heads, forKey: .heads) }
        try container.encodeIfPresent(name, forKey: .name)
        if isForgotten { try container.encode(true, forKey: .isForgotten) }
        try container.encodeIfPresent(left, forKey: .left)
        let texts = labels.map { ($0.key.description, $0.value) }
        try container.encode(Dictionary(uniqueKeysWithValues: texts), forKey: .labels)
    }

    // MARK: The item

    /// Reads the body of an item.
    /// - Returns: nil for another content, and for that of a later version.
    init?(_ body: SecureBytes) {
        var text = body.withUnsafeBytes { [UInt8]($0) }
        let taken = SecretJSON.take(from: &text, members: Self.secretMembers)
        guard let record = try? SalternAPI.decode(Self.self, text, taken), record.schema == Self.presentSchema,
            record.isForgotten || (1...Self.keyLimit).contains(record.keys.count)
        else { return nil }
        self = record
    }

    /// The body of the item. Equal records have equal bytes.
    var body: SecureBytes {
        get throws(VaultError) {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            do { return try SecretJSON.encode(self, with: encoder) } catch { throw .unreadable }
        }
    }

    // MARK: Keys

    /// Returns the private halves of a member's public keys.
    func privateKeys(of publicKeys: MemberPublicKeys) -> MemberPrivateKeys? {
        keys.lazy.compactMap(\.privateKeys).first { $0.publicKeys == publicKeys }
    }

    var latestKeys: MemberPrivateKeys? { keys.last?.privateKeys }

    /// True for a record that has room for further pairs, also after a merge.
    var hasRoomForKeys: Bool { keys.count < Self.keyLimit / 2 }

    mutating func add(_ keys: MemberPrivateKeys) { self.keys.append(KeyPair(keys)) }

    /// Keeps a key of the vault.
    mutating func take(_ key: GenerationKey, _ number: GenerationNumber) {
        insert(KnownKey(number: number.value, key: SecretBytes(key.bytes)))
    }

    /// Removes the key of an entry that the server has rejected.
    mutating func drop(_ key: GenerationKey, _ number: GenerationNumber) {
        let known = KnownKey(number: number.value, key: SecretBytes(key.bytes))
        generations.removeAll { $0 == known }
    }

    private mutating func insert(_ known: KnownKey) {
        guard !generations.contains(known) else { return }
        let place = generations.firstIndex { $0.number > known.number } ?? generations.endIndex
        generations.insert(known, at: place)
    }

    /// Takes the keys of another version that a log describes.
    mutating func takeKeys(of other: MembershipRecord, in log: MembershipLog) {
        for known in other.generations where known.key(in: log) != nil { insert(known) }
    }

    /// Returns the keys that a log describes. Others belong to another history, or to entries that the log lacks.
    func generationKeys(in log: MembershipLog) -> GenerationKeys {
        var keys = GenerationKeys()
        for known in generations {
            if let (key, number) = known.key(in: log) { try? keys.insert(key, number, log) }
        }
        return keys
    }

    /// Removes the keys to which sealed previous keys lead from later ones.
    mutating func dropReachable(_ previous: [GenerationNumber: [UInt8]], in log: MembershipLog) {
        guard generations.count > 1 else { return }
        var reached = GenerationKeys()
        var kept: [KnownKey] = []
        for known in generations.reversed() {
            guard let (key, number) = known.key(in: log) else {
                kept.append(known)
                continue
            }
            if reached[number] != nil { continue }
            kept.append(known)
            try? reached.insert(key, number, log)
            _ = reached.openPrevious(previous, log)
        }
        generations = kept.reversed()
    }

    // MARK: Heads

    /// Keeps the head of a log in place of those that the log contains. A head that it does not contain stays: it is
    /// later, or the evidence of another history.
    mutating func takeHead(of log: MembershipLog) {
        heads.removeAll { $0.place(in: log) == .known }
        guard !heads.contains(where: { $0.number > log.head.number.value }) else { return }
        heads.append(KnownHead(number: log.head.number.value, hash: Base64Bytes(log.head.hash.bytes)))
        bound()
    }

    /// The highest number of an entry that a device of this account has seen.
    var highestNumber: UInt64 { heads.map(\.number).max() ?? 0 }

    /// The lowest number at which a device of this account has seen another entry than the log has.
    func difference(from log: MembershipLog) -> UInt64? {
        heads.filter { $0.place(in: log) == .diverged }.map(\.number).min()
    }

    private mutating func bound() {
        heads.sort { left, right in
            left.number == right.number
                ? left.hash.bytes.lexicographicallyPrecedes(right.hash.bytes) : left.number < right.number
        }
        if heads.count > Self.headLimit { heads.removeFirst(heads.count - Self.headLimit) }
    }

    // MARK: Labels

    /// Removes the labels of closed invitations by which no present member has joined.
    mutating func dropLabels(in log: MembershipLog) {
        let used = Set(log.presentMembers.compactMap { $0.invitation.map { InvitationID($0) } })
        for id in labels.keys where !used.contains(id) {
            if log.invitations[VaultLog.InvitationID(id)]?.isClosed ?? false { labels[id] = nil }
        }
    }

    // MARK: Merging

    /// Merges two versions: keys by union, numbers by the highest. The log decides which keys are those of the member,
    /// also when two devices have begun to join at the same time.
    /// - Returns: nil for a version that cannot be read; then both are kept.
    static func merge(_ mine: PlainItem, _ theirs: PlainItem) -> PlainItem? {
        guard let own = MembershipRecord(mine.body), let other = MembershipRecord(theirs.body),
            let body = try? own.merged(with: other).body
        else { return nil }
        return PlainItem(title: theirs.title, body: body)
    }

    /// Returns the rule of all collections: that of the app, and that of these items.
    static func mergeRule(_ rule: MergeRule?) -> MergeRule {
        { name, base, mine, theirs in
            name == collection ? merge(mine, theirs) : rule?(name, base, mine, theirs)
        }
    }

    func merged(with other: MembershipRecord) -> MembershipRecord {
        if isForgotten != other.isForgotten {
            let (forgotten, kept) = isForgotten ? (self, other) : (other, self)
            // A later membership has another id.
            return forgotten.memberId == kept.memberId ? forgotten : kept
        }
        var merged = other
        merged.keys += keys.filter { pair in !other.keys.contains(pair) }
        for known in generations { merged.insert(known) }
        merged.heads += heads.filter { head in !other.heads.contains(head) }
        merged.bound()
        merged.labels.merge(labels) { theirs, _ in theirs }
        merged.name = other.name ?? name
        if merged.left != merged.memberId { merged.left = left ?? other.left }
        return merged
    }
}

extension MembershipRecord.KeyPair {
    init(_ keys: MemberPrivateKeys) {
        signing = SecretBytes(keys.signing.bytes)
        agreement = SecretBytes(keys.agreement.bytes)
        privateKeys = keys
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        signing = try container.decode(SecretBytes.self, forKey: .signing)
        agreement = try container.decode(SecretBytes.self, forKey: .agreement)
        privateKeys = Self.keys(signing: signing.bytes, agreement: agreement.bytes)
    }

    private static func keys(signing: SecureBytes, agreement: SecureBytes) -> MemberPrivateKeys? {
        try? MemberPrivateKeys(signing: P256.PrivateKey(signing), agreement: P256.PrivateKey(agreement))
    }
}

extension MembershipRecord.KeyPair: Equatable {
    static func == (one: Self, other: Self) -> Bool {
        one.signing == other.signing && one.agreement == other.agreement
    }
}

extension MembershipRecord.KnownKey {
    /// Returns the key and its number; nil unless a log describes it.
    fileprivate func key(in log: MembershipLog) -> (GenerationKey, GenerationNumber)? {
        guard let key = GenerationKey(key.bytes), let number = GenerationNumber(number),
            log.generation(number)?.describes(key) ?? false
        else { return nil }
        return (key, number)
    }
}

extension MembershipRecord.KnownHead {
    /// Finds the head in a log. A head that cannot be one is in no log.
    func place(in log: MembershipLog) -> MembershipLog.HeadPlace {
        guard let number = EntryNumber(number), let hash = EntryHash(hash.bytes) else { return .known }
        return log.place(of: Head(number: number, hash: hash))
    }
}
