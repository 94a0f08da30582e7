internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `GET /v1/vaults/{vault}/log`: returns the entries above the number `after`, and the caller's key boxes.
struct ShowLog: AccountEndpoint {
    /// Maximum number of entries in a reply.
    private static let limit: Int64 = 500

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        let after = Int64(try request.query.optional("after", as: Int.self) ?? 0)
        guard after >= 0 else {
            throw Problem(.badRequest, "invalid_parameter", detail: "`after` must be a number.", field: "after")
        }
        var (entries, boxes, previousKeys, seals) = try await authorization.read(
            FindEntries(vaultID: vaultID, after: after, limit: Self.limit + 1),
            FindBoxes(vaultID: vaultID, accountID: authorization.accountID), FindPreviousKeys(vaultID: vaultID),
            FindSeals(vaultID: vaultID), in: vaultID)
        let isFollowed = entries.count > Int(Self.limit)
        if isFollowed { entries.removeLast() }
        return .json(capacity: 128 + entries.reduce(0) { $0 + $1.count * 4 / 3 + 8 }) { writer in
            writer.object { writer in
                writer.array("entries") { writer in for entry in entries { writer.string(base64: entry) } }
                writer.member("more", isFollowed)
                writer.array("boxes") { writer in
                    for box in boxes {
                        writer.object { writer in
                            writer.member("generation", box.generation)
                            writer.member("box", base64: box.box)
                        }
                    }
                }
                writer.array("previousKeys") { writer in
                    for key in previousKeys {
                        writer.object { writer in
                            writer.member("generation", key.generation)
                            writer.member("key", base64: key.key)
                        }
                    }
                }
                writer.array("seals") { writer in for number in seals { writer.integer(number) } }
            }
        }
    }
}

/// `PUT /v1/vaults/{vault}/seen`: stores the latest head that the caller has seen, with its signature. Other members
/// compare it with their logs.
struct NoteSeen: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        let seat = try await authorization.seat(in: vaultID, atLeast: .reader)
        let (head, signature) = try JSONBody.read(request) { members in
            (try members.head(), try members.required("signature", VaultSignature.read))
        }
        try await authorization.countingRefusal {
            let log = try await authorization.log(of: vaultID, pace: request.pace)
            guard let head, let signature, let member = VaultLog.MemberID(seat.memberID.uuid.bytes),
                log.place(of: head) == .known,
                MemberStatement(.seen, member, head, signature).isValid(in: log)
            else { throw VaultProblem.seenRefused }
            let number = Int64(head.number.value)
            // A repeated statement waits for nothing.
            guard number > seat.seenNumber else { return }
            let store = StoreSeen(
                vaultID: vaultID, memberID: seat.memberID, number: number, hash: head.hash.bytes,
                signature: signature.bytes)
            try await authorization.transaction(in: vaultID, atLeast: .reader, lane: .log) { transaction, seat in
                guard seat.memberID == store.memberID else { throw Problem.notFound }
                transaction.enqueue(store)
            }
        }
        return .noContent
    }
}

/// Stores the head that a member has seen, unless it has seen a later one, or the head is not in the log.
struct StoreSeen: Statement {
    let vaultID: VaultID
    let memberID: MemberID
    let number: Int64
    let hash: [UInt8]
    let signature: [UInt8]

    static let sql: SQL<Self> = """
        UPDATE saltern.vault_members m
        SET seen_number = \(\.number), seen_hash = \(\.hash), seen_signature = \(\.signature)
        WHERE m.vault_id = \(\.vaultID) AND m.member_id = \(\.memberID) AND m.seen_number < \(\.number)
            AND EXISTS (SELECT FROM saltern.vault_entries e
                WHERE e.vault_id = \(\.vaultID) AND e.number = \(\.number) AND e.hash = \(\.hash))
        """
}

extension JSONMembers {
    /// Reads the members `number` and `hash` of a head. Nil if they are not of an entry.
    mutating func head() throws -> Head? {
        let number = try required("number") { json in
            UInt64(exactly: try json.integer()).flatMap { EntryNumber($0) }
        }
        let hash = try required("hash") { json in Base64Text.decode(try json.text()).flatMap { EntryHash($0) } }
        guard let number, let hash else { return nil }
        return Head(number: number, hash: hash)
    }
}

extension VaultSignature {
    /// Reads a signature. Nil for other bytes.
    static func read(_ json: JSONValue) throws -> VaultSignature? {
        Base64Text.decode(try json.text()).flatMap { VaultSignature($0) }
    }
}
