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
    /// The invitations that are not closed.
    public private(set) var unclosed: Set<InvitationID> = []
    /// All generations, in order.
    public private(set) var generations: [Generation]
    /// True after a leave or a change of keys: a former key holder reads until the next generation.
    public private(set) var isRotationDue = false
    /// The seals of each entry that cut authors off, with the managers that listed. Empty for one without seals.
    public private(set) var seals: [EntryNumber: [(author: MemberID, seal: Seal)]] = [:]

    /// The numbers of the entries that began the generations.
    private var generationStarts: [EntryNumber] = [.first]
    private var usedKeys: Set<P256.PublicKey>
    private var lateSeals = 0
    /// The invitations that are not used up either.
    private var standing: Set<InvitationID> = []
    /// The latest time of entries by managers. The times of joins and leaves do not count, so no outsider can move it.
    private var clock: EntryTime

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
        clock = entry.time
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
        standing.compactMap { invitations[$0] }.filter { $0.isOpen(at: clock) }
    }

    /// Returns the time at which a join counts: its own, but not before the managers' entries that precede it.
    func effective(_ time: EntryTime) -> EntryTime { max(time, clock) }

    /// The entries that cut off writers, and which no manager has sealed yet. A manager's device seals them.
    public var unsealed: [EntryNumber] { seals.filter(\.value.isEmpty).keys.sorted() }

    func isUsed(_ key: P256.PublicKey) -> Bool { usedKeys.contains(key) }

    var canSealLate: Bool { lateSeals < LogBounds.sealsWindingDown }

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
            case .cut: seals[entry.number] = []
            case .seal(let seal):
                seals[seal.entry]?.append((entry.author, seal))
                if entry.number.value >= LogBounds.windingDown { lateSeals += 1 }
            case .offer(let member): offer = member.map { (entry.number, $0) }
            case .owner: owner = entry.author
            case .clock: clock = max(clock, entry.time)
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
