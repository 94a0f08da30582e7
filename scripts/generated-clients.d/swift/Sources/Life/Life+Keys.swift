import Foundation
import SalternAPI

extension Life {
    private var proof: Proof { Proof(currentPasswordKey: person.passwordKey) }

    private var newKDF: NewKDF { NewKDF(iterations: iterations) }

    private func keyringRevision() async throws -> Int64 {
        try await AccountsAPI.getKeyring(apiConfiguration: device).revision
    }

    mutating func keys() async throws {
        let code = sealed(32)
        let settings = RecoverySettings(
            currentPasswordKey: person.passwordKey, recoveryKey: code, keyring: sealed(60), accountKeyring: sealed(60),
            accountKeyringRevision: try await keyringRevision())
        let set = try await RecoveryAPI.setRecovery(recoverySettings: settings, apiConfiguration: device)
        try check(set.recovery._set, "a recovery")
        let revision = set.keyringRevision ?? 0
        let next = KeyringRequest(
            keyring: sealed(60), recoveryKeyring: sealed(60), removeRecovery: false,
            currentPasswordKey: person.passwordKey)
        let replaced = try await AccountsAPI.putKeyring(
            keyringRequest: next, ifMatch: tag(revision), apiConfiguration: device)
        try same(replaced.revision, revision + 1, "the next keyring")
        let kept = try await AccountsAPI.listKeptKeyrings(apiConfiguration: device).keyrings
        try check(!kept.isEmpty, "kept keyrings")
        let opened = try await RecoveryAPI.recover(
            recoveryRequest: RecoveryRequest(userid: person.userid, recoveryKey: code, device: Device(name: "Swift")),
            apiConfiguration: person.anybody)
        try same(opened.keyring, next.recoveryKeyring ?? "", "the keyring of the recovery")
        let newKey = try await person.key("the second password")
        let change = try await AccountsAPI.changeCredential(
            credentialRequest: CredentialRequest(
                currentPasswordKey: person.passwordKey, passwordKey: newKey, kdf: newKDF, keyring: sealed(60),
                keyringRevision: replaced.revision, recoveryKeyring: sealed(60), removeRecovery: false),
            apiConfiguration: device)
        try check(change.recovery._set && !change.currentSessionEnded, "a recovery, still")
        person.passwordKey = newKey
    }

    mutating func rotate() async throws {
        let rotation = try await RotationAPI.openRotation(proof: proof, apiConfiguration: device)
        try check(rotation.items == 3 && rotation.revision > Self.highRevision, "three items, got \(rotation)")
        let items = try await ItemsAPI.listItems(fields: .meta, apiConfiguration: device).items
        let staged = items.map {
            StagedItem(
                id: $0.id, ifRevision: $0.revision, format: format, iterations: 1_000, title: sealed(40),
                body: sealed(60))
        }
        let state = try await RotationAPI.stageItems(
            id: rotation.id, stagedItems: StagedItems(items: staged), apiConfiguration: device)
        try same(state.staged, 3, "staged items")
        let newKey = try await person.key("the third password")
        let result = try await RotationAPI.commitRotation(
            id: rotation.id,
            rotationCommit: RotationCommit(
                currentPasswordKey: person.passwordKey, passwordKey: newKey, kdf: newKDF, keyring: sealed(60),
                keyringRevision: try await keyringRevision(), removeRecovery: true),
            apiConfiguration: device)
        try check(result.items == 3 && !result.recovery._set, "a rotation of three, got \(result)")
        try same(result.revision, rotation.revision + 3, "the revision after the rotation")
        person.passwordKey = newKey
    }

    func share() async throws {
        let end = Date(timeIntervalSinceNow: 86_400)
        let payload = ShareContent(
            format: format, salt: sealed(16), iterations: 10_000, sealed: sealed(60), expiresAt: end, maxViews: 3)
        let made = try await SharesAPI.createShare(shareContent: payload, apiConfiguration: device)
        let anybody = person.anybody
        let opened = try await SharesAPI.openShare(id: made.id, apiConfiguration: anybody)
        try same(opened.sealed, payload.sealed, "what was shared")
        try same(opened.viewsLeft, 2, "views left")
        try check(abs((opened.expiresAt ?? .distantPast).timeIntervalSince(end)) <= 1, "the end \(end)")
        let shares = try await SharesAPI.listShares(limit: 10, apiConfiguration: device).shares
        try same(shares.map(\.id), [made.id], "the share")
        try await SharesAPI.deleteShare(id: made.id, apiConfiguration: Person.client(made.manageToken))
        try await refused(404, "not_found") { () async throws(ErrorResponse) in
            try await SharesAPI.openShare(id: made.id, apiConfiguration: anybody)
        }
    }

    mutating func leave() async throws {
        let kinds = try await AccountsAPI.listEvents(limit: 100, apiConfiguration: device).events.map(\.kind)
        try check(Set(kinds).isSuperset(of: ["rotation_committed", "recovery_set"]), "the log, got \(kinds)")
        person.userid = Person.newUserid()
        let newKey = try await person.key("the fourth password")
        let change = try await AccountsAPI.changeUserid(
            useridRequest: UseridRequest(
                currentPasswordKey: person.passwordKey, userid: person.userid, passwordKey: newKey, kdf: newKDF,
                keyring: sealed(60), keyringRevision: try await keyringRevision(), removeRecovery: true),
            apiConfiguration: device)
        try same(change.userid, person.userid, "the userid")
        person.passwordKey = newKey
        try same(try await AccountsAPI.getAccount(apiConfiguration: device).usage.items, 3, "items at the end")
        try await AccountsAPI.deleteAccount(
            accountDeletion: AccountDeletion(currentPasswordKey: person.passwordKey), apiConfiguration: device)
        let person = person
        try await refused(401, "wrong_credentials") { () async throws(ErrorResponse) in try await person.logIn() }
    }
}
