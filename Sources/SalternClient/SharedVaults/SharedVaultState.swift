internal import Cryptography
internal import Foundation
internal import VaultLog

/// The findings about a shared vault that outlast a process, as JSON in the store. Missing members are unset.
struct VaultFindings: Codable, Hashable {
    /// The number from which on the server, or another device of this account, has shown other entries.
    var fork: UInt64?
    /// Stays until a person has acknowledged it, as ``isInvalid`` and ``otherHistories`` do.
    var isRolledBack: Bool?
    var isInvalid: Bool?
    /// Members that have signed a head which the log does not have, with its number.
    var otherHistories: [MemberID: UInt64]?
    /// The time at which the end of the membership was noted, in seconds since 1970; nil while it has not ended.
    var endedAt: Int64?
    /// True after this device has sent the deletion of the vault without a reply.
    var isDeletionRequested: Bool?
    var needsUpdate: Bool?
    /// SHA-256 of the unusable box that this device has reported.
    var reportedBox: Base64Bytes?
    /// The head of the server with which the whole log was compared.
    var comparedHead: Base64Bytes?
    /// True after a device was lost or the data key was rotated, until the keys of this member are replaced.
    var isRekeyDue: Bool?
    /// True after such an event, until the record has a pair of keys that was made since.
    var needsFreshKeys: Bool?
    /// Items whose last judged version never counts.
    var refused: Set<ItemID>?
    /// By unsealed entry, the time at which this device has first seen it, in seconds since 1970.
    var unsealedSince: [UInt64: Int64]?
    /// The number of the log's head at this device's first complete round of items. Of earlier edits the device cannot
    /// decide whether they came before a later cut.
    var witnessedSince: UInt64?
    /// The times of the last automatic rotation and of the last attempt to claim, in seconds since 1970.
    var rotatedAt: Int64?
    var claimedAt: Int64?
    /// The number of the last head that this device has signed for the others.
    var sentSeen: UInt64?

    /// Notes the end of the membership, or that it has not ended.
    mutating func noteEnd(at moment: Int64?) { endedAt = moment.map { endedAt ?? $0 } }

    var isEnded: Bool { endedAt != nil }

    /// The findings about the server and the members, which a new membership does not end.
    var ofNewMembership: VaultFindings {
        var findings = VaultFindings()
        findings.fork = fork
        findings.isRolledBack = isRolledBack
        findings.otherHistories = otherHistories
        // An interrupted join goes on with a pair that may be disclosed.
        findings.isRekeyDue = needsFreshKeys
        findings.needsFreshKeys = needsFreshKeys
        return findings
    }
}

/// A shared vault on this device: its verified log, this account's keys, and the findings.
struct SharedVaultState {
    let id: SharedVaultID
    var record: MembershipRecord
    var log: MembershipLog
    var keys = GenerationKeys()
    /// The generations whose previous key this device cannot open.
    var brokenGenerations: [GenerationNumber] = []
    var findings = VaultFindings()
    var seats: [VaultSeat] = []

    /// The present member whose keys this account has; nil when there is none.
    var own: VaultMember? {
        if let member = log.members[VaultLog.MemberID(record.memberId)], member.role != nil,
            record.privateKeys(of: member.keys) != nil
        {
            return member
        }
        return log.presentMembers.first { record.privateKeys(of: $0.keys) != nil }
    }

    /// The members whose present keys this account has, also those of former memberships.
    var ownMembers: Set<VaultLog.MemberID> {
        let known = record.keys.compactMap { $0.privateKeys?.publicKeys }
        return Set(log.members.values.filter { known.contains($0.keys) }.map(\.id))
    }

    /// True when the log has this account's member with keys that this account does not have.
    var hasForeignKeys: Bool {
        own == nil && log.members[VaultLog.MemberID(record.memberId)]?.role != nil
    }

    var role: Role? { findings.isEnded ? nil : own?.role }

    /// True when the membership has ended by a `leave` of a device of this account.
    var hasLeft: Bool { role == nil && !hasForeignKeys && record.left == record.memberId }

    /// The time for which unsent edits wait after the end of a membership, in seconds: that in which the members of a
    /// restored database put entries back.
    private static let endPeriod: Int64 = 7 * 86_400

    /// True when only the server has stated the end of the membership, not long ago. A restored database can lack a
    /// join that another member puts back.
    func canReturn(at moment: Int64) -> Bool {
        own != nil && isRecent(findings.endedAt, at: moment, within: Self.endPeriod)
    }

    /// The key under which items are written; nil when this device does not have it.
    var presentKey: GenerationKey? { keys[log.currentGeneration.number] }

    /// Signs entries and edits of this account's member.
    var signer: MemberSigner {
        get throws(VaultError) {
            guard let own, let keys = record.privateKeys(of: own.keys),
                let signer = try? MemberSigner(own.id, of: log.vault, keys)
            else { throw .shared(hasForeignKeys ? .stopped : .notPermitted) }
            return signer
        }
    }

    /// Puts the keys of generations into the state that the record and the sealed previous keys open.
    mutating func openKeys(_ previous: [GenerationNumber: [UInt8]]) {
        keys = record.generationKeys(in: log)
        brokenGenerations = keys.openPrevious(previous, log)
    }

    /// Throws when findings forbid writing.
    /// - Parameter repairs: True for an entry that needs no key, or that ends the lack of one.
    func checkWritable(repairs: Bool = false) throws(VaultError) {
        for problem in problems where problem.stopsWriting {
            switch problem {
            case .missingKey: if !repairs { throw .shared(.keyMissing) }
            case .updateNeeded: throw .shared(.updateNeeded)
            case .ended: throw .shared(.notPermitted)
            default: throw .shared(.stopped)
            }
        }
    }

    /// Throws when not even a `leave` can be sent.
    func checkLeavable() throws(VaultError) {
        guard !findings.isEnded, own != nil else { throw .shared(hasForeignKeys ? .stopped : .notPermitted) }
    }

    // MARK: Findings

    /// Members whose validly signed head is not in the log, now or at an earlier time.
    var membersWithAnotherHistory: [MemberID] {
        let diverged = seats.filter { seat in seen(seat).map { log.place(of: $0) == .diverged } ?? false }.map(\.id)
        return Set(diverged).union((findings.otherHistories ?? [:]).keys).sorted()
    }

    /// The validly signed heads with higher numbers than that of the log.
    var unknownHeads: [(member: MemberID, number: UInt64)] {
        // A log with entries of a later version ends before them.
        if findings.needsUpdate == true { return [] }
        return seats.compactMap { seat in
            guard let head = seen(seat), log.place(of: head) == .unknown else { return nil }
            return (seat.id, head.number.value)
        }
    }

    /// The head that a member has signed; nil for none and for a wrong signature.
    func seen(_ seat: VaultSeat) -> Head? {
        guard let seen = seat.seen, let number = EntryNumber(seen.number), let hash = EntryHash(seen.hash.bytes),
            let signature = VaultSignature(seen.signature.bytes)
        else { return nil }
        let head = Head(number: number, hash: hash)
        let statement = MemberStatement(.seen, VaultLog.MemberID(seat.id), head, signature)
        return statement.isValid(in: log) ? head : nil
    }

    /// The number of entries from which on a new vault is advised.
    private static let nearlyFull: UInt64 = 2_500

    var problems: [SharedVaultProblem] {
        var problems: [SharedVaultProblem] = []
        if let number = findings.fork { problems.append(.fork(at: Int(number))) }
        if findings.needsUpdate == true { problems.append(.updateNeeded) }
        if findings.isEnded || own == nil && !hasForeignKeys {
            problems.append(.ended)
        } else if hasForeignKeys {
            problems.append(.foreignKeys)
        } else if presentKey == nil {
            problems.append(.missingKey)
        }
        if findings.isRekeyDue == true { problems.append(.keysDue) }
        if findings.isRolledBack == true { problems.append(.rolledBack) }
        if findings.isInvalid == true { problems.append(.invalidLog) }
        problems += membersWithAnotherHistory.map { .anotherHistory($0) }
        if role != nil, !log.unsealed.isEmpty { problems.append(.waitsForSeal(count: log.unsealed.count)) }
        if let refused = findings.refused, !refused.isEmpty { problems.append(.putAside(count: refused.count)) }
        if log.head.number.value >= Self.nearlyFull { problems.append(.nearlyFull) }
        return problems
    }

    /// True when the inviter's signed head, or a later entry of the inviter, contains this account's join.
    /// - Parameter lastEntry: Returns the number of the last entry of a member.
    func isConfirmed(_ lastEntry: (VaultLog.MemberID) -> EntryNumber?) -> Bool {
        guard let own, let invitation = own.invitation.flatMap({ log.invitations[$0] }) else { return true }
        if let number = lastEntry(invitation.inviter), number >= own.joined.number { return true }
        guard let seat = seats.first(where: { $0.id == MemberID(invitation.inviter) }), let head = seen(seat) else {
            return false
        }
        return log.place(of: head) == .known && head.number >= own.joined.number
    }
}

// MARK: Values of the log

/// A name of a vault or member, which its author claims.
typealias ClaimedName = VaultLog.MemberName

extension Identifier {
    /// Converts an id of the log.
    init<Subject>(_ id: VaultLog.Identifier<Subject>) {
        guard let converted = Self(bytes: id.bytes) else { preconditionFailure("an id has 16 bytes") }
        self = converted
    }
}

extension VaultLog.Identifier {
    /// Converts an id of the kit.
    init<Entity>(_ id: SalternClient.Identifier<Entity>) {
        guard let converted = Self(id.bytes) else { preconditionFailure("an id has 16 bytes") }
        self = converted
    }
}

extension SharedRole {
    init(_ role: Role) {
        self =
            switch role {
            case .reader: .reader
            case .writer: .writer
            case .manager: .manager
            }
    }

    /// The role in entries.
    var role: Role {
        switch self {
        case .reader: .reader
        case .writer: .writer
        case .manager: .manager
        }
    }
}

extension EntryTime {
    /// The time in whole seconds.
    init(_ date: Date) {
        let seconds = UInt64(min(max(date.timeIntervalSince1970, 0), TimeInterval(Self.limit)))
        guard let time = Self(seconds: seconds) else { preconditionFailure("the seconds are within the limit") }
        self = time
    }

    var date: Date { Date(timeIntervalSince1970: TimeInterval(seconds)) }
}
