internal import HTTPCore
internal import Postgres
internal import VaultLog

/// The log of a vault whose row is locked, and changes of it.
struct StoredLog {
    let vaultID: VaultID
    private(set) var log: MembershipLog
    private let transaction: Transaction

    /// Reads the log.
    init(of vaultID: VaultID, in transaction: Transaction) async throws {
        let entries = try await transaction.execute(FindEntries(vaultID: vaultID))
        self.vaultID = vaultID
        self.transaction = transaction
        do {
            log = try MembershipLog(entries.map { try Entry($0) }, areVerified: true)
        } catch {
            // Only valid entries are stored.
            throw Problem.internalError
        }
    }

    /// True if the entry stands in the log: the request repeats one whose reply was lost.
    func contains(_ entry: Entry) -> Bool { log.hash(at: entry.number) == entry.hash }

    /// Appends an entry and stores its effects.
    ///
    /// - Parameters:
    ///   - keys: The keys of a new generation.
    ///   - holder: The account of a new member.
    ///   - now: The time of the request.
    /// - Returns: The vault's revision.
    /// - Throws: ``VaultProblem``, or a `PostgresError`.
    mutating func append(
        _ entry: Entry, keys: NewKeys? = nil, holder: AccountID? = nil, now: Timestamp
    ) async throws -> Int64 {
        guard entry.number.value == log.head.number.value + 1, entry.previous == log.head.hash else {
            throw try await moved(since: entry)
        }
        try VaultTime.check(entry, at: now)
        let before = log
        do throws(EntryRejection) { try log.append(entry) } catch { throw VaultProblem.refused(error) }
        try check(keys, since: before)
        try await store(entry, keys, holder, since: before)
        let head = log.head
        guard
            let revision = try await transaction.execute(
                MoveHead(
                    vaultID: vaultID, number: Int64(head.number.value), hash: head.hash.bytes,
                    keyID: log.currentGeneration.keyID.number, isRotationDue: log.isRotationDue)
            ).first
        else { throw Problem.notFound }
        return revision
    }

    /// Returns the error for an entry that does not continue the log, with the entries that its author lacks.
    private func moved(since entry: Entry) async throws -> VaultProblem {
        let after = Int64(entry.number.value) - 1
        let entries = try await transaction.execute(FindEntries(vaultID: vaultID, after: after, limit: 128))
        return .membershipMoved(head: Int64(log.head.number.value), entries: entries)
    }

    /// Checks that a new generation has keys, with a box for each member, and no other entry has any.
    private func check(_ keys: NewKeys?, since before: MembershipLog) throws(VaultProblem) {
        guard log.generations.count > before.generations.count else {
            if keys != nil { throw .invalidBoxes }
            return
        }
        let members = Set(log.presentMembers.map { MemberID($0.id.bytes) })
        guard let keys, Set(keys.boxes.map(\.member)) == members, keys.boxes.count == members.count else {
            throw .invalidBoxes
        }
    }

    private func store(
        _ entry: Entry, _ keys: NewKeys?, _ holder: AccountID?, since before: MembershipLog
    ) async throws {
        transaction.enqueue(
            InsertEntry(
                vaultID: vaultID, number: Int64(entry.number.value), hash: entry.hash.bytes, entry: entry.bytes))
        for member in log.members.values where member.role != before.members[member.id]?.role {
            transaction.enqueue(
                PutMember(
                    vaultID: vaultID, memberID: MemberID(member.id.bytes),
                    holder: before.members[member.id] == nil ? holder : nil,
                    role: member.role.map { Int16($0.rawValue) } ?? VaultRole.ended.rawValue))
        }
        if let keys {
            let generation = Int64(log.currentGeneration.number.value)
            let members = log.presentMembers.map { MemberID($0.id.bytes) }
            transaction.enqueue(
                InsertBoxes(
                    vaultID: vaultID, generation: generation, members: keys.boxes.map(\.member),
                    boxes: keys.boxes.map(\.box)))
            transaction.enqueue(
                InsertPreviousKey(vaultID: vaultID, generation: generation, key: keys.previousKey))
            transaction.enqueue(RemoveOldBoxes(vaultID: vaultID, generation: generation, members: members))
        }
        let closed = log.invitations.values.filter { invitation in
            invitation.isClosed && !(before.invitations[invitation.terms.id]?.isClosed ?? true)
        }
        if !closed.isEmpty {
            transaction.enqueue(RemoveInvitations(ids: closed.map { InvitationID($0.terms.id.bytes) }))
        }
    }
}

/// The keys of a new generation: a box for each member, and the key before under the new one.
struct NewKeys: Sendable {
    let boxes: [KeyBox]
    let previousKey: [UInt8]

    /// Reads `boxes` and `previousKey`. Nil if both are missing.
    init?(_ members: inout JSONMembers) throws {
        let boxes = try members.optional("boxes") { json in
            let boxes = try json.array()
            guard boxes.count <= LogBounds.members else { throw VaultProblem.invalidBoxes }
            return try boxes.map { try KeyBox(json: $0) }
        }
        let previousKey = try members.optional("previousKey", KeyBox.sealed)
        if boxes == nil, previousKey == nil { return nil }
        guard let boxes, let previousKey else { throw VaultProblem.invalidBoxes }
        self.boxes = boxes
        self.previousKey = previousKey
    }
}

/// The key of a generation, sealed for one member.
struct KeyBox: Sendable {
    let member: MemberID
    let box: [UInt8]

    /// Reads `{member, box}`.
    init(json: JSONValue) throws {
        self = try JSONMembers.read(json) { members in
            let member = try members.required("member") { json in
                guard let member = MemberID(pathParameter: try json.string()) else {
                    throw BatchProblem.invalidIdentifier
                }
                return member
            }
            return KeyBox(member: member, box: try members.required("box", Self.sealed))
        }
    }

    /// Reads a short sealed value.
    static func sealed(_ json: JSONValue) throws -> [UInt8] {
        guard let bytes = Base64Text.decode(try json.text()), (1...SharedVault.boxLimit).contains(bytes.count) else {
            throw VaultProblem.invalidBoxes
        }
        return bytes
    }

    private init(member: MemberID, box: [UInt8]) {
        self.member = member
        self.box = box
    }
}

extension SalternServer.Identifier {
    /// Converts an id of the log.
    init(_ bytes: [UInt8]) { self.init(UUID(bytes: bytes) ?? .zero) }
}

extension VaultKeyID {
    /// The id as the database stores it.
    var number: Int32 { Int32(bitPattern: bytes.reduce(0) { $0 << 8 | UInt32($1) }) }
}

extension JSONMembers {
    /// Reads the member `entry`.
    mutating func entry() throws -> Entry {
        try required("entry") { json in
            guard let bytes = Base64Text.decode(try json.text()), let entry = try? Entry(bytes) else {
                throw VaultProblem.malformedEntry
            }
            return entry
        }
    }
}
