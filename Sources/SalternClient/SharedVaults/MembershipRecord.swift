internal import Cryptography
internal import Foundation
internal import VaultLog

/// The keys of this account in one shared vault: an ordinary item of the account, with the vault's id as its id.
///
/// It is written before a vault is founded or joined, so that no crash separates a membership from its keys. Versions
/// of several devices merge without a question: keys by union, numbers by the highest.
struct MembershipRecord: Codable, Sendable {
    /// A pair of private keys, each in the form of X9.63.
    struct KeyPair: Codable, Sendable, Equatable {
        let signing: SecretBytes
        let agreement: SecretBytes
    }

    /// The newest known key of the vault. Earlier ones are sealed under later ones.
    struct NewestKey: Codable, Sendable, Equatable {
        let number: UInt64
        let key: SecretBytes
    }

    /// The highest head that a device of this account has seen.
    struct KnownHead: Codable, Sendable, Equatable {
        let number: UInt64
        let hash: Base64Bytes
    }

    /// The collection of these items, which lists of items omit.
    static let collection = "saltern-vaults"
    static let presentSchema = 1
    private static let secretMembers = ["signing", "agreement", "key"]
    /// More keys than a log permits for one member.
    private static let keyLimit = 256

    var schema = Self.presentSchema
    /// This account's id inside of the vault. The log has the last word: see ``SharedVaultState/own``.
    var memberId: MemberID
    /// All pairs of keys, the latest last.
    var keys: [KeyPair]
    var generation: NewestKey?
    var head: KnownHead?
    /// The labels that this account gave to its invitations.
    var labels: [InvitationID: String] = [:]
    /// The vault's name at the founding or join. The item with the vault's own id replaces it.
    var name: String?

    private enum CodingKeys: CodingKey { case schema, memberId, keys, generation, head, labels, name }

    init(memberId: MemberID, _ keys: MemberPrivateKeys, name: String?) {
        self.memberId = memberId
        self.keys = [KeyPair(keys)]
        self.name = name
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        schema = try container.decode(Int.self, forKey: .schema)
        memberId = try container.decode(MemberID.self, forKey: .memberId)
        keys = try container.decode([KeyPair].self, forKey: .keys)
        generation = try container.decodeIfPresent(NewestKey.self, forKey: .generation)
        head = try container.decodeIfPresent(KnownHead.self, forKey: .head)
        name = try container.decodeIfPresent(String.self, forKey: .name)
        let texts = try container.decodeIfPresent([String: String].self, forKey: .labels) ?? [:]
        for (text, label) in texts { if let id = InvitationID(text) { labels[id] = label } }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(schema, forKey: .schema)
        try container.encode(memberId, forKey: .memberId)
        try container.encode(keys, forKey: .keys)
        try container.encodeIfPresent(generation, forKey: .generation)
        try container.encodeIfPresent(head, forKey: .head)
        try container.encodeIfPresent(name, forKey: .name)
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
            (1...Self.keyLimit).contains(record.keys.count)
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

    mutating func add(_ keys: MemberPrivateKeys) { self.keys.append(KeyPair(keys)) }

    var generationKey: GenerationKey? { generation.flatMap { GenerationKey($0.key.bytes) } }

    /// Keeps a key, unless a later one is known.
    mutating func take(_ key: GenerationKey, _ number: GenerationNumber) {
        if let generation, generation.number > number.value { return }
        generation = NewestKey(number: number.value, key: SecretBytes(key.bytes))
    }

    /// Keeps a head, unless a later one is known.
    mutating func take(_ head: Head) {
        if let known = self.head, known.number >= head.number.value { return }
        self.head = KnownHead(number: head.number.value, hash: Base64Bytes(head.hash.bytes))
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
        var merged = other
        merged.keys += keys.filter { pair in !other.keys.contains(pair) }
        if let generation, generation.number > other.generation?.number ?? 0 { merged.generation = generation }
        if let head, head.number > other.head?.number ?? 0 { merged.head = head }
        merged.labels.merge(labels) { theirs, _ in theirs }
        merged.name = other.name ?? name
        return merged
    }
}

extension MembershipRecord.KeyPair {
    init(_ keys: MemberPrivateKeys) {
        signing = SecretBytes(keys.signing.bytes)
        agreement = SecretBytes(keys.agreement.bytes)
    }

    /// The keys; nil for bytes that are none.
    var privateKeys: MemberPrivateKeys? {
        guard let signing = try? P256.PrivateKey(signing.bytes), let agreement = try? P256.PrivateKey(agreement.bytes)
        else { return nil }
        return try? MemberPrivateKeys(signing: signing, agreement: agreement)
    }
}
