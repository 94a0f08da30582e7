internal import HTTPCore
internal import Postgres

/// Sealed bytes of a client for one of its passkeys. The server does not interpret them.
struct PasskeyBox: Sendable {
    static let byteLimit = 1_024

    let bytes: [UInt8]

    init(json: JSONValue) throws {
        guard let bytes = try Base64Text.decode(json.text()), (1...Self.byteLimit).contains(bytes.count) else {
            throw PasskeyProblem.invalidBox
        }
        self.bytes = bytes
    }
}

/// Replaces unlock boxes in a change of the password key: the unlock key sealed again, for each unlocking passkey. Null
/// removes a box: a client cannot seal for a passkey whose public key its keyring does not have.
struct PasskeyBoxes: Sendable {
    private let boxes: [PasskeyID: PasskeyBox?]

    /// The longest part of a request, in bytes.
    static let requestLimit = PasskeyProblem.limit * 4_096

    /// Reads the optional `passkeyBoxes: [{id, box}]`.
    init(_ members: inout JSONMembers) throws {
        var boxes: [PasskeyID: PasskeyBox?] = [:]
        try members.optional("passkeyBoxes") { json in
            for element in try json.array() {
                try JSONMembers.read(element) { members in
                    let id = try members.required("id", PasskeyID.init(json:))
                    let box = try members.required("box") { $0 == .null ? nil : try PasskeyBox(json: $0) }
                    guard boxes.updateValue(box, forKey: id) == nil else { throw PasskeyProblem.malformed }
                }
            }
        }
        self.boxes = boxes
    }

    /// Checks that there is a box or null for each unlocking passkey and for no other.
    /// - Throws: ``PasskeyProblem/boxesRequired(_:)``.
    func check(cover unlocking: [PasskeyID]) throws(PasskeyProblem) {
        guard Set(boxes.keys) == Set(unlocking) else { throw .boxesRequired(unlocking) }
    }

    /// Stores the boxes in a transaction that holds the account's row. Each removal is an event.
    func apply(_ transaction: Transaction, to accountID: AccountID, now: Timestamp) async throws(PostgresError) {
        for (id, box) in boxes {
            guard let box else {
                transaction.enqueue(RemoveUnlockBox(accountID: accountID, id: id))
                try await transaction.note(
                    RecordSecurityEvent(accountID: accountID, kind: .passkeyUnlockRemoved, now: now))
                continue
            }
            transaction.enqueue(ReplaceUnlockBox(accountID: accountID, id: id, box: box))
        }
    }
}
