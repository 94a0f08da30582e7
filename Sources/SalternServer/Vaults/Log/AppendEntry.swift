internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `POST /v1/vaults/{vault}/log`: appends an entry of the caller to the vault's log.
///
/// A repeated request returns the same result, also after its author has left. New keys need the password key, so that
/// a stolen session cannot replace those of its owner.
struct AppendEntry: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        do {
            try await authorization.seat(in: vaultID, atLeast: .reader)
        } catch let problem as Problem where problem.status == .notFound {
            guard let reply = try await Self.repeated(request, vaultID, authorization) else { throw problem }
            return reply
        }
        let new = try await authorization.countingRefusal { try await NewEntry(request) }
        let entry = new.entry
        if case .rekey = entry.payload { try await Self.prove(new.passwordKey, authorization) }
        let appended = try await authorization.transaction(
            onLogOf: vaultID, atLeast: .reader, pace: request.pace
        ) { transaction, seat, stored in
            if let revision = new.revision, !stored.contains(entry) {
                try await Self.check(revision, of: vaultID, in: transaction)
            }
            return try await Self.append(entry, new.additions, to: stored, seat)
        }
        return Self.reply(.ok, entry, vault: nil, revision: appended)
    }

    /// Returns the reply to an author that has left since the first request. Nil if its entry does not stand in the
    /// log.
    private static func repeated(
        _ request: Request, _ vaultID: VaultID, _ authorization: Authorization
    ) async throws -> Response? {
        let entry = try await authorization.countingRefusal { try await NewEntry(request) }.entry
        let find = FindEntry(vaultID: vaultID, number: Int64(entry.number.value))
        guard try await authorization.database.execute(find).first == entry.bytes else {
            authorization.door.refusals.take(authorization.accountID.uuid)
            return nil
        }
        return reply(.ok, entry, vault: nil, revision: nil)
    }

    private static func prove(_ key: PasswordKey?, _ authorization: Authorization) async throws {
        guard let key else { throw CurrentKeyMissing() }
        let proven = try await authorization.prove(key)
        // The credential may have changed during the check.
        try await authorization.change(as: proven) { _ in }
    }

    /// Checks that no item has changed above a revision. A manager then has all edits of the members that it removes.
    private static func check(_ revision: Int64, of vaultID: VaultID, in transaction: Transaction) async throws {
        let find = FindItemAbove(vaultID: vaultID, revision: revision)
        guard let later = try await transaction.execute(find).first else { return }
        throw VaultProblem.vaultMoved(revision: later)
    }

    /// Appends an entry of the caller, unless it stands in the log.
    ///
    /// - Returns: The vault's revision. Nil if the entry stands in the log.
    static func append(
        _ entry: Entry, _ additions: EntryAdditions = .none, to log: StoredLog, _ seat: VaultSeat
    ) async throws -> Int64? {
        if log.contains(entry) { return nil }
        guard MemberID(entry.author.bytes) == seat.memberID else { throw VaultProblem.refused(.unknownAuthor) }
        var log = log
        return try await log.append(entry, additions)
    }

    static func reply(_ status: HTTPStatus, _ entry: Entry, vault: VaultID?, revision: Int64?) -> Response {
        .json(status) { writer in
            writer.object { writer in
                if let vault { writer.member("id", vault) }
                writer.member("number", Int64(entry.number.value))
                writer.member("hash", base64: entry.hash.bytes)
                if let revision { writer.member("revision", revision) }
            }
        }
    }
}

/// The request of an ``AppendEntry``.
private struct NewEntry {
    let entry: Entry
    let additions: EntryAdditions
    /// The revision above which no item may have changed.
    let revision: Int64?
    let passwordKey: PasswordKey?

    init(_ request: Request) async throws {
        (entry, additions, revision, passwordKey) = try await JSONBody.readLarge(request) { members in
            (
                try members.entry(),
                EntryAdditions(keys: try NewKeys(&members), list: try await members.sealList(request.pace)),
                try members.optional("ifRevision") { json in try json.integer() },
                try members.optional("currentPasswordKey", PasswordKey.init(json:))
            )
        }
        switch entry.payload {
        case .role, .leave, .revoke, .rotate, .remove, .seal, .offer, .rekey: break
        case .found, .invite, .join, .accept: throw VaultProblem.otherRoute
        }
        if revision != nil, ![.remove, .role].contains(entry.payload.kind) { throw VaultProblem.otherRoute }
    }
}

/// Finds the highest revision of a vault's items and tombstones above a number.
struct FindItemAbove: Statement {
    typealias Row = Int64

    let vaultID: VaultID
    let revision: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT i.revision FROM saltern.vault_items i WHERE i.vault_id = \(\.vaultID) AND i.revision > \(\.revision)
            AND i.revision > 0
        ORDER BY i.revision DESC LIMIT 1
        """
}

/// The keys of a new generation: a box for each member, and the key before under the new one.
struct NewKeys: Sendable {
    let boxes: [KeyBox]
    let previousKey: [UInt8]

    /// Reads `boxes` and `previousKey`. Nil if both are missing.
    init?(_ members: inout JSONMembers) throws {
        let boxes = try members.optional("boxes", KeyBox.list)
        let previousKey = try members.optional("previousKey", KeyBox.previousKey)
        if boxes == nil, previousKey == nil { return nil }
        guard let boxes, let previousKey else { throw VaultProblem.invalidBoxes }
        self.boxes = boxes
        self.previousKey = previousKey
    }
}

extension NewKeys? {
    /// Checks that a new generation has keys, with a box for each member, and no other entry has any.
    func check(since before: MembershipLog, _ log: MembershipLog) throws(VaultProblem) {
        guard log.generations.count > before.generations.count else {
            if self != nil { throw .invalidBoxes }
            return
        }
        let members = Set(log.presentMembers.map { MemberID($0.id.bytes) })
        guard let self, Set(self.boxes.map(\.member)) == members, self.boxes.count == members.count else {
            throw .invalidBoxes
        }
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
            return KeyBox(member: member, box: try members.required("box", Self.box))
        }
    }

    /// Reads boxes.
    static func list(_ json: JSONValue) throws -> [KeyBox] {
        let boxes = try json.array()
        guard boxes.count <= LogBounds.members else { throw VaultProblem.invalidBoxes }
        return try boxes.map { try KeyBox(json: $0) }
    }

    private static func box(_ json: JSONValue) throws -> [UInt8] {
        try sealed(json, GenerationBox.byteCount...GenerationBox.byteCount)
    }

    /// Reads a key that is sealed with that of the next generation.
    static func previousKey(_ json: JSONValue) throws -> [UInt8] {
        try sealed(json, GenerationKey.sealedPreviousByteCount...GenerationKey.sealedPreviousByteCount)
    }

    /// Reads a sealed part of an invitation.
    static func content(_ json: JSONValue) throws -> [UInt8] { try sealed(json, 1...SharedVault.sealedLimit) }

    private static func sealed(_ json: JSONValue, _ size: ClosedRange<Int>) throws -> [UInt8] {
        guard let bytes = Base64Text.decode(try json.text()), size.contains(bytes.count) else {
            throw VaultProblem.invalidBoxes
        }
        return bytes
    }

    /// The condition that no box of the present generation is stored for a row of `vault_members`. Those of earlier
    /// generations are removed.
    ///
    /// - Parameter vault: The comparison with the vault's id.
    static func isMissing<Root>(_ member: SQLFragment, vault: SQL<Root>) -> SQL<Root> {
        """
        NOT EXISTS (SELECT FROM saltern.vault_boxes b
            WHERE b.vault_id \(vault) AND b.vault_id = \(member).vault_id AND b.member_id = \(member).member_id)
        """
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
    mutating func entry() throws -> Entry { try required("entry", Entry.read) }

    /// Reads the member `entries`, in slices.
    mutating func entries(_ pace: Pace) async throws -> [Entry]? {
        guard let values = try optional("entries", { json in try json.array() }) else { return nil }
        guard values.count <= SharedVault.entriesAtOnce else { throw VaultProblem.malformedEntry }
        var entries: [Entry] = []
        for value in values {
            entries.append(try Entry.read(value))
            if entries.count % 16 == 0 { await pace.giveWay() }
        }
        return entries
    }
}

extension Entry {
    /// Reads an entry in base64.
    static func read(_ json: JSONValue) throws -> Entry {
        guard let bytes = Base64Text.decode(try json.text()), let entry = try? Entry(bytes) else {
            throw VaultProblem.malformedEntry
        }
        return entry
    }
}
