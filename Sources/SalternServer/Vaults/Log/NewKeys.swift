internal import HTTPCore
internal import Postgres
internal import VaultLog

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
