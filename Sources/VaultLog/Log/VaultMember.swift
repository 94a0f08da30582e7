internal import Cryptography

/// The rights of a member.
public enum Role: UInt8, Hashable, Comparable, CaseIterable, Sendable {
    /// Reads items.
    case reader = 1
    /// Also writes items.
    case writer = 2
    /// Also changes members, invitations and generations.
    case manager = 3

    public static func < (left: Role, right: Role) -> Bool { left.rawValue < right.rawValue }

    /// True for roles whose edits count.
    public var writes: Bool { self >= .writer }
}

/// A member of a vault, present or former, as the log describes it.
public struct VaultMember: Sendable {
    /// Keys, with the entry from which on they are those of the member.
    struct KeyPeriod: Sendable {
        let since: EntryNumber
        let keys: MemberPublicKeys
        let verifying: ES256.VerifyingKey
    }

    /// A role, or nil for none, with the entry that gave it.
    struct RolePeriod: Sendable {
        let since: EntryNumber
        let role: Role?
    }

    /// The id.
    public let id: MemberID
    /// The name that the member claims.
    public let name: SealedName
    /// The generation under which the name is sealed.
    public let nameGeneration: GenerationNumber
    /// The entry by which the member joined.
    public let joined: Head
    /// The invitation by which the member joined; nil for the founder.
    public let invitation: InvitationID?
    /// In order. Neither is ever empty.
    private var keyPeriods: [KeyPeriod]
    private var rolePeriods: [RolePeriod]

    init(
        _ entry: Entry, _ keys: MemberPublicKeys, _ verifying: ES256.VerifyingKey, _ name: SealedName,
        _ generation: GenerationNumber, _ role: Role, invitation: InvitationID?
    ) {
        id = entry.author
        self.name = name
        nameGeneration = generation
        joined = entry.head
        self.invitation = invitation
        keyPeriods = [KeyPeriod(since: entry.number, keys: keys, verifying: verifying)]
        rolePeriods = [RolePeriod(since: entry.number, role: role)]
    }

    /// The present role; nil for a former member.
    public var role: Role? { rolePeriods.last?.role }
    /// The present keys, or the last ones of a former member.
    public var keys: MemberPublicKeys { current.keys }
    /// The latest entry that gave the member its role or keys.
    public var since: EntryNumber { max(current.since, rolePeriods.last?.since ?? current.since) }
    /// The number of changes of keys.
    var rekeyCount: Int { keyPeriods.count - 1 }
    /// True after a change of keys from ``LogBounds/windingDown`` on.
    var hasReplacedKeysLate: Bool { keyPeriods.count > 1 && current.since.value >= LogBounds.windingDown }

    var current: KeyPeriod {
        guard let last = keyPeriods.last else { preconditionFailure("a member has keys") }
        return last
    }

    /// Returns the role after the entry with a number; nil before the member joined and after it left.
    public func role(at number: EntryNumber) -> Role? { rolePeriods.last { $0.since <= number }?.role }

    /// Returns the keys after the entry with a number.
    func keys(at number: EntryNumber) -> KeyPeriod? { keyPeriods.last { $0.since <= number } }

    /// Returns the entry that cut off edits whose head is the entry with a number: their key was replaced, or their
    /// author does not write at present. Nil when such edits count.
    ///
    /// The replaced key may be in strange hands, so its edits stay cut off although the member still writes.
    func cut(at number: EntryNumber) -> EntryNumber? {
        guard let replacement = keyPeriods.dropFirst().first(where: { $0.since > number })?.since else {
            return writes(rolePeriods.last) ? nil : lastLoss(before: nil)
        }
        // A member that did not write at the replacement was cut off before it.
        return role(at: replacement)?.writes ?? false ? replacement : lastLoss(before: replacement)
    }

    /// The latest entry, before another one, by which the member stopped writing.
    private func lastLoss(before limit: EntryNumber?) -> EntryNumber? {
        rolePeriods.indices.dropFirst()
            .last { index in
                let since = rolePeriods[index].since
                return writes(rolePeriods[index - 1]) && !writes(rolePeriods[index]) && limit.map { since < $0 } ?? true
            }
            .map { rolePeriods[$0].since }
    }

    private func writes(_ period: RolePeriod?) -> Bool { period?.role?.writes ?? false }

    mutating func change(to role: Role?, at number: EntryNumber) {
        rolePeriods.append(RolePeriod(since: number, role: role))
    }

    mutating func change(to keys: MemberPublicKeys, _ verifying: ES256.VerifyingKey, at number: EntryNumber) {
        keyPeriods.append(KeyPeriod(since: number, keys: keys, verifying: verifying))
    }
}

/// An invitation as the log describes it.
public struct VaultInvitation: Sendable {
    /// The terms.
    public let terms: InvitationTerms
    /// The manager that opened it.
    public let inviter: MemberID
    /// The entry that opened it.
    public let entry: Head
    /// The number of joins.
    public internal(set) var joins: UInt16 = 0
    /// True after a revocation, a new generation, and changes of the inviter.
    public internal(set) var isClosed = false

    /// Returns true when a join is possible at a time.
    public func isOpen(at time: EntryTime) -> Bool { !isClosed && joins < terms.uses && time <= terms.expiry }
}
