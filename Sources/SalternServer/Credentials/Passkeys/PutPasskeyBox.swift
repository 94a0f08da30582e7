internal import HTTPCore
internal import Postgres

/// `PUT /v1/account/passkeys/{id}/box`: stores the sealed values by which a passkey unlocks the keyring, or removes
/// them. The client needs the passkey's PRF output to seal them.
///
/// The server never receives the public key to which the box is sealed. A server that returns public keys could return
/// its own, and would receive the unlock key. So the keyring contains them.
struct PutPasskeyBox: AccountEndpoint {
    private struct Body {
        let currentKey: PasswordKey
        /// The private half of the passkey's key pair, sealed under the PRF output, and the unlock key, sealed to the
        /// public half. Nil ends the unlocking.
        let unlock: (sealedPrivateKey: PasskeyBox, box: PasskeyBox)?

        init(_ members: inout JSONMembers) throws {
            currentKey = try members.required("currentPasswordKey", PasswordKey.init(json:))
            let box = try members.required("box") { try $0 == .null ? nil : PasskeyBox(json: $0) }
            guard let box else {
                members.skipNull("sealedPrivateKey")
                unlock = nil
                return
            }
            unlock = (try members.required("sealedPrivateKey", PasskeyBox.init(json:)), box)
        }
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: PasskeyID = try request.parameters.require("id")
        let body = try JSONBody.read(request) { try Body(&$0) }
        let proven = try await authorization.prove(body.currentKey)
        try await authorization.change(as: proven) { transaction in
            guard let unlock = body.unlock else { return try await remove(id, as: proven, transaction) }
            let store = StoreUnlockBox(
                accountID: proven.accountID, id: id, sealedPrivateKey: unlock.sealedPrivateKey, box: unlock.box)
            guard let logsIn = try await transaction.execute(store).first else { throw Problem.notFound }
            guard logsIn else { throw PasskeyProblem.doesNotLogIn }
            try await transaction.note(
                RecordSecurityEvent(accountID: proven.accountID, kind: .passkeyUnlockSet, now: proven.now))
        }
        return .noContent
    }

    /// Removes the values. A passkey without them is a success, because a retry after a lost reply finds none.
    private func remove(_ id: PasskeyID, as proven: ProvenCaller, _ transaction: Transaction) async throws {
        let (removed, ids) = try await transaction.execute(
            RemoveUnlockBox(accountID: proven.accountID, id: id),
            Owned(accountID: proven.accountID, read: FindPasskeyIDs()))
        guard ids.contains(id) else { throw Problem.notFound }
        guard !removed.isEmpty else { return }
        try await transaction.note(
            RecordSecurityEvent(accountID: proven.accountID, kind: .passkeyUnlockRemoved, now: proven.now))
    }
}

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

/// Stores the unlock box of a passkey. Returns whether the passkey logs in, or no row if it is unknown.
struct StoreUnlockBox: Statement {
    typealias Row = Bool

    let accountID: AccountID
    let id: PasskeyID
    let sealedPrivateKey: PasskeyBox
    let box: PasskeyBox

    static let sql: SQL<Self> = """
        UPDATE saltern.passkeys k SET unlock_key = CASE WHEN k.logs_in THEN \(\.sealedPrivateKey.bytes)::bytea END,
            unlock_box = CASE WHEN k.logs_in THEN \(\.box.bytes)::bytea END
        WHERE k.account_id = \(\.accountID) AND k.credential_id = \(\.id)
        RETURNING k.logs_in
        """
}

/// Removes the unlock box of a passkey and the key that opens it. Returns no row if the passkey has none.
struct RemoveUnlockBox: Statement {
    typealias Row = PasskeyID

    let accountID: AccountID
    let id: PasskeyID

    static let sql: SQL<Self> = """
        UPDATE saltern.passkeys k SET unlock_key = NULL, unlock_box = NULL
        WHERE k.account_id = \(\.accountID) AND k.credential_id = \(\.id) AND k.unlock_box IS NOT NULL
        RETURNING k.credential_id
        """
}

/// Replaces the unlock box of a passkey and keeps the key that opens it.
struct ReplaceUnlockBox: Statement {
    let accountID: AccountID
    let id: PasskeyID
    let box: PasskeyBox

    static let sql: SQL<Self> = """
        UPDATE saltern.passkeys k SET unlock_box = \(\.box.bytes)
        WHERE k.account_id = \(\.accountID) AND k.credential_id = \(\.id) AND k.unlock_box IS NOT NULL
        """
}
