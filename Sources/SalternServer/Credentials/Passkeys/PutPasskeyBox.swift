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
