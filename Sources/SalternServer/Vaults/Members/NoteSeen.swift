internal import HTTPCore
internal import Postgres
internal import VaultLog

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
