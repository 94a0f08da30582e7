internal import Cryptography

/// The members, invitations and generations of a vault, as they follow from its entries.
///
/// A pure function of the entries, and the only place that decides about their validity, for server and clients. Each
/// entry names the hash of the one before, so the head stands for all of them.
public struct MembershipLog: Sendable {
    /// The vault.
    public let vault: VaultID
    /// The hashes of all entries, in order.
    public private(set) var hashes: [EntryHash]
    /// All members, also former ones.
    public private(set) var members: [MemberID: VaultMember]
    /// The account behind this member has the vault in its plan. It is always a manager.
    public private(set) var owner: MemberID
    /// The standing offer of the vault: the number of the entry, and the member that may accept.
    public private(set) var offer: (number: EntryNumber, to: MemberID)?
    /// All invitations, also closed ones.
    public private(set) var invitations: [InvitationID: VaultInvitation] = [:]
    /// All generations, in order.
    public private(set) var generations: [Generation]
    /// True after a leave or a change of keys: a former key holder reads until the next generation.
    public private(set) var isRotationDue = false
    /// The latest entry that cut each writer off.
    public private(set) var lastCuts: [MemberID: EntryNumber] = [:]

    /// The numbers of the entries that began the generations.
    private var generationStarts: [EntryNumber] = [.first]
    private var usedKeys: Set<P256.PublicKey>
    /// By author and manager, the manager's latest seal of the author's edits.
    private var seals: [MemberID: [MemberID: LatestSeal]] = [:]
    private var lateSeals = 0
    /// The invitations that are not closed, and those of them that are not used up.
    public private(set) var unclosed: Set<InvitationID> = []
    private var standing: Set<InvitationID> = []
    private var clock: ManagersClock

    /// Begins a log with its founding entry.
    public init(founding entry: Entry) throws(EntryRejection) {
        guard case .found(let founding) = entry.payload else { throw .wrongNumber }
        guard entry.previous == .none else { throw .wrongPrevious }
        guard entry.vault == entry.foundedVault else { throw .wrongVault }
        let key = try Self.verifyingKey(founding.keys)
        guard entry.isSigned(by: key) else { throw .wrongSignature }
        vault = entry.vault
        hashes = [entry.hash]
        owner = entry.author
        let founder = VaultMember(entry, founding.keys, key, founding.name, .first, .manager, invitation: nil)
        members = [entry.author: founder]
        generations = [founding.generation]
        usedKeys = [founding.keys.signing, founding.keys.agreement]
        clock = ManagersClock(entry.author, entry.time)
    }

    /// Reads a whole log.
    /// - Parameter areVerified: True for entries whose signatures this program has verified before it stored them. All
    ///   other rules are checked again.
    public init(_ entries: some Sequence<Entry>, areVerified: Bool = false) throws(EntryRejection) {
        var iterator = entries.makeIterator()
        guard let first = iterator.next() else { throw .wrongNumber }
        try self.init(founding: first)
        while let entry = iterator.next() { try append(entry, isVerified: areVerified) }
    }

    /// The latest entry.
    public var head: Head {
        guard let hash = hashes.last, let number = EntryNumber(UInt64(hashes.count)) else {
            preconditionFailure("a log has 1 to 4,096 entries")
        }
        return Head(number: number, hash: hash)
    }

    /// Appends an entry, or changes nothing.
    /// - Throws: ``EntryRejection`` for an entry that is not valid at this place.
    public mutating func append(_ entry: Entry) throws(EntryRejection) { try append(entry, isVerified: false) }

    /// Appends an entry whose signatures this program has verified before it stored it.
    public mutating func append(verified entry: Entry) throws(EntryRejection) {
        try append(entry, isVerified: true)
    }

    mutating func append(_ entry: Entry, isVerified: Bool) throws(EntryRejection) {
        guard entry.vault == vault else { throw .wrongVault }
        guard let next = head.number.next else { throw .full }
        guard entry.number == next else { throw .wrongNumber }
        guard entry.previous == head.hash else { throw .wrongPrevious }
        apply(try EntryRules(log: self, entry: entry, isVerified: isVerified).check(), entry)
    }

    static func verifyingKey(_ keys: MemberPublicKeys) throws(EntryRejection) -> ES256.VerifyingKey {
        do throws(P256.Failure) { return try ES256.VerifyingKey(keys.signing) } catch { throw .library }
    }

    // MARK: State

    /// The number of present members.
    public private(set) var presentCount = 1

    /// The present members.
    public var presentMembers: [VaultMember] { members.values.filter { $0.role != nil } }

    /// The generation under which items are written.
    public var currentGeneration: Generation {
        guard let last = generations.last else { preconditionFailure("a log has a first generation") }
        return last
    }

    /// Returns a generation.
    public func generation(_ number: GenerationNumber) -> Generation? {
        generations.indices.contains(Int(number.value) - 1) ? generations[Int(number.value) - 1] : nil
    }

    /// The entry that began the current generation.
    public var generationStart: EntryNumber { generationStarts.last ?? .first }

    /// Returns the generation whose key has an id.
    public func generation(withKey id: VaultKeyID) -> Generation? { generations.first { $0.keyID == id } }

    /// Returns the generation that is current after the entry with a number.
    public func generation(at number: EntryNumber) -> Generation {
        let later = generationStarts.lastIndex { $0 <= number } ?? 0
        return generations[later]
    }

    /// Returns the hash of an entry.
    public func hash(at number: EntryNumber) -> EntryHash? {
        hashes.indices.contains(Int(number.value) - 1) ? hashes[Int(number.value) - 1] : nil
    }

    /// The open invitations: not closed, not used up, and not expired by the clock of the managers' entries.
    public var openInvitations: [VaultInvitation] {
        standing.compactMap { invitations[$0] }.filter { $0.isOpen(at: clock.time) }
    }

    /// Returns the time at which a join counts: its own, but not before the time that two managers bear out.
    func effective(_ time: EntryTime) -> EntryTime { max(time, clock.time) }

    func isUsed(_ key: P256.PublicKey) -> Bool { usedKeys.contains(key) }

    /// Returns true when an entry contains one of the keys.
    public func isUsed(_ keys: MemberPublicKeys) -> Bool { isUsed(keys.signing) || isUsed(keys.agreement) }

    // MARK: Seals

    /// A seal in the log.
    public struct LatestSeal: Hashable, Sendable {
        /// The number of the entry.
        public let number: EntryNumber
        /// The manager that listed.
        public let manager: MemberID
        /// The content of the entry.
        public let seal: Seal
    }

    /// The latest seal of each manager for each writer, in order. Devices need the lists of these alone.
    public var latestSeals: [LatestSeal] { seals.values.flatMap(\.values).sorted { $0.number < $1.number } }

    /// Returns the latest seals of an author's edits, one of each manager, in order.
    public func seals(of author: MemberID) -> [LatestSeal] {
        (seals[author] ?? [:]).values.sorted { $0.number < $1.number }
    }

    /// Returns those of the latest seals that decide about edits that an entry cut off.
    func seals(of author: MemberID, after cut: EntryNumber) -> [LatestSeal] {
        (seals[author] ?? [:]).values.filter { $0.number > cut }
    }

    /// The writers that no manager has sealed since the latest entry that cut them off, in the order of these entries.
    public var unsealed: [MemberID] {
        lastCuts.filter { author, cut in seals(of: author, after: cut).isEmpty }
            .sorted { ($0.value.value, $0.key.text) < ($1.value.value, $1.key.text) }.map(\.key)
    }

    /// Returns true for the first seal since the writer was cut off. Writers that were cut off earlier have a bound.
    func canSealLate(_ author: MemberID) -> Bool {
        guard let cut = lastCuts[author], seals(of: author, after: cut).isEmpty else { return false }
        return cut.value >= LogBounds.windingDown || lateSeals < LogBounds.sealsWindingDown
    }

    // MARK: Changes

    private mutating func apply(_ changes: [EntryChange], _ entry: Entry) {
        for change in changes {
            switch change {
            case .member(let member):
                members[member.id] = member
                presentCount += 1
            case .role(let id, let role):
                members[id]?.change(to: role, at: entry.number)
                if role == nil { presentCount -= 1 }
            case .keys(let keys, let verifying):
                members[entry.author]?.change(to: keys, verifying, at: entry.number)
            case .usesKey(let key): usedKeys.insert(key)
            case .generation(let generation):
                generations.append(generation)
                generationStarts.append(entry.number)
                isRotationDue = false
            case .rotationDue: isRotationDue = true
            case .invitation(let invitation):
                invitations[invitation.terms.id] = invitation
                unclosed.insert(invitation.terms.id)
                standing.insert(invitation.terms.id)
            case .joined(let id):
                invitations[id]?.joins += 1
                if let invitation = invitations[id], invitation.joins >= invitation.terms.uses { standing.remove(id) }
            case .closes(let id): close(id)
            case .closesAll: for id in unclosed { close(id) }
            case .closesThoseOf(let member):
                for id in unclosed where invitations[id]?.inviter == member { close(id) }
            case .cut(let member): lastCuts[member] = entry.number
            case .seal(let seal):
                seals[seal.author, default: [:]][entry.author] = LatestSeal(
                    number: entry.number, manager: entry.author, seal: seal)
                if entry.number.value >= LogBounds.windingDown,
                    lastCuts[seal.author].map({ $0.value < LogBounds.windingDown }) ?? true
                {
                    lateSeals += 1
                }
            case .offer(let member): offer = member.map { (entry.number, $0) }
            case .owner: owner = entry.author
            case .clock: clock.add(entry.author, entry.time)
            }
        }
        hashes.append(entry.hash)
    }

    private mutating func close(_ id: InvitationID) {
        invitations[id]?.isClosed = true
        unclosed.remove(id)
        standing.remove(id)
    }
}

/// The time that entries of two managers bear out: the highest that is not above the times of both.
///
/// The date of one manager alone would end all invitations if it lay in the future. The times of joins, leaves and
/// changes of keys do not count, so no outsider moves the clock.
struct ManagersClock: Sendable {
    /// The manager with the highest time.
    private var first: (manager: MemberID, time: EntryTime)
    /// The highest time of the others; nil without others.
    private var second: EntryTime?

    init(_ manager: MemberID, _ time: EntryTime) { first = (manager, time) }

    /// The borne out time; the beginning of 1970 while the vault has had one manager.
    var time: EntryTime { second ?? .beginning }

    mutating func add(_ manager: MemberID, _ time: EntryTime) {
        guard manager != first.manager else {
            first.time = max(first.time, time)
            return
        }
        if time > first.time {
            second = first.time
            first = (manager, time)
        } else {
            second = max(second ?? time, time)
        }
    }
}
