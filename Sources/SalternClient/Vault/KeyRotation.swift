internal import Cryptography

/// Replaces the data key and the keys in shared vaults, after they may have been disclosed.
struct KeyRotation {
    let session: VaultSession
    let plan: PlanLimits
    let syncing: SyncService
    let sender: ChunkSender

    /// Generates a new data key and seals all content with it, after the old one may have been disclosed. Then replaces
    /// the account's keys in shared vaults, which the old key opens. The password, passkeys and the printed recovery
    /// code stay valid. All other sessions end. Their devices seal unsent edits again after the next log-in.
    @discardableResult
    func rotateKeys(password: Password) async throws(VaultError) -> SyncReport {
        let report = try await replaceDataKey(password: password)
        // Where it fails, the next syncs repeat it.
        try await session.memberships?.replaceAllKeys()
        return report
    }

    /// Seals all content with a new data key. The account's keys in shared vaults are due afterwards.
    private func replaceDataKey(password: Password) async throws(VaultError) -> SyncReport {
        // Content that is sent during the rotation would be sealed with the old key.
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        var report = try await syncing.round()
        guard !report.isHeld else { throw .deletionsHeld }
        let opened = try session.open
        // The keyring is sealed with it. A server that accepts a wrong one would lock the user out.
        let stretched = try await session.keys.proven(password)
        let rotation = try await session.call { api throws(APIError) in
            try await api.openRotation(currentPasswordKey: stretched.passwordKey, opened.token)
        }
        try session.stored {
            try session.store.transaction {
                // The state before belongs to an earlier change, which has ended.
                try session.store.keepStopped()
                try session.store.set(.rotation, rotation.id.bytes)
            }
        }
        let key = DataKey.random()
        do throws(VaultError) {
            try await carryOut(rotation.id, key, stretched, opened, into: &report)
        } catch {
            // Possibly only the reply was lost.
            try? await session.unconfirmed.settleRotation()
            guard let current = session.opened, current.sealer.keyring.currentKey == key else { throw error }
        }
        return report
    }

    private func carryOut(
        _ id: RotationID, _ key: DataKey, _ password: StretchedPassword, _ opened: VaultSession.Opened,
        into report: inout SyncReport
    ) async throws(VaultError) {
        let iterations = try session.keys.knownIterations()
        var (next, revision) = try await rotatedKeyring(key, of: opened.userid)
        var staged: [ItemID: Revision] = [:]
        var fruitless = 0
        for _ in 0..<session.settings.limits.rounds {
            let sealer = Sealer(account: opened.account, keyring: next)
            let added = try await stage(id, sealer, opened, &staged)
            fruitless = added == 0 ? fruitless + 1 : 0
            // This device has not opened the items that the server misses, so it cannot seal them.
            if fruitless > 2 { throw .unreadable }
            // Other tasks can have made keys for vaults, and a round above has sent them under the old data key. Keys
            // that are made from here on wait for the server lock, and are sent under the new one. A process that ends
            // after the commit leaves the keys due.
            try session.memberships?.noteDisclosedKeys()
            let (credential, sealed) = try next.credential(
                password, iterations, replacing: revision, opened.account)
            let reply: RotationCommitReply
            do throws(APIError) {
                // The server accepts an equal request again, so a retry after a lost reply is safe.
                reply = try await credential.sent(noting: session.store, session.settings.retries) {
                    credential throws(APIError) in
                    try await session.api.commitRotation(id, credential, current: password.passwordKey, opened.token)
                }
            } catch {
                switch error.code {
                case .rotationIncomplete?:
                    // Other devices have written since.
                    let more = try await syncing.runEngine()
                    guard !more.isHeld else { throw .deletionsHeld }
                    report.add(more)
                case .keyringChanged?: (next, revision) = try await rotatedKeyring(key, of: opened.userid)
                default: throw VaultError(error)
                }
                continue
            }
            return try finish(next, sealed, reply, password, opened)
        }
        throw .unavailable(.unexpectedReply)
    }

    /// Returns the server's keyring with the new key instead of its data keys. The keys of recovery and passkeys stay.
    private func rotatedKeyring(_ key: DataKey, of userid: String) async throws(VaultError) -> (Keyring, Revision) {
        let (keyring, revision) = try await session.serverKeyring.keyringForSealing()
        return (try session.keys.numberedForSending(keyring.changed { $0.dataKeys = [key] }, of: userid), revision)
    }

    /// Stages the items that are not staged in their present version.
    /// - Returns: The number of staged items.
    private func stage(
        _ rotation: RotationID, _ new: Sealer, _ opened: VaultSession.Opened, _ staged: inout [ItemID: Revision]
    ) async throws(VaultError) -> Int {
        let limits = session.settings.limits
        let before = opened.sealer
        var batch: [StagedItem] = []
        var (bytes, count) = (0, 0)
        var last: ItemID?
        while true {
            let ids = try session.stored { try session.store.itemIDs(after: last, limit: limits.batch) }
            for id in ids {
                guard let item = try session.stored({ try session.store.item(id) }), staged[id] != item.revision else {
                    continue
                }
                guard let content = new.resealed(item.content, id, from: before) else {
                    throw .unreadable
                }
                batch.append(
                    StagedItem(
                        id: id, ifRevision: item.revision, format: content.format, title: content.title?.bytes,
                        body: content.body.bytes))
                staged[id] = item.revision
                bytes += 256 + (content.body.bytes.count + (content.title?.bytes.count ?? 0)) * 4 / 3
                guard batch.count >= limits.batch || bytes >= limits.batchBytes else { continue }
                try await send(batch, rotation, opened)
                count += batch.count
                try reportProgress(count)
                (batch, bytes) = ([], 0)
            }
            guard let end = ids.last else { break }
            last = end
        }
        for chunk in try session.stored({ try session.store.chunks() }) where staged[chunk.id] != chunk.revision {
            guard let item = try await sender.resealedChunk(chunk, from: before, to: new, opened.token) else {
                continue
            }
            batch.append(item)
            staged[chunk.id] = chunk.revision
            bytes += 256 + item.body.bytes.count * 4 / 3
            guard batch.count >= limits.batch || bytes >= limits.batchBytes else { continue }
            try await send(batch, rotation, opened)
            count += batch.count
            (batch, bytes) = ([], 0)
            try reportProgress(count)
        }
        if !batch.isEmpty {
            try await send(batch, rotation, opened)
            count += batch.count
            try reportProgress(count)
        }
        return count
    }

    private func reportProgress(_ count: Int) throws(VaultError) {
        session.observers.progress.notify(
            .sealedAnew(count, of: Int(try session.stored { try session.store.itemCount() })))
    }

    private func send(
        _ batch: [StagedItem], _ rotation: RotationID, _ opened: VaultSession.Opened
    ) async throws(VaultError) {
        _ = try await session.call { api throws(APIError) in
            try await api.stageItems(batch, in: rotation, opened.token)
        }
        guard let current = session.opened, current.engine === opened.engine else { throw .locked }
    }

    private func finish(
        _ keyring: Keyring, _ sealed: [UInt8], _ reply: RotationCommitReply, _ password: StretchedPassword,
        _ opened: VaultSession.Opened
    ) throws(VaultError) {
        guard let current = session.opened, current.engine === opened.engine else { throw .locked }
        try session.keys.remember(
            account: opened.account, userid: opened.userid, iterations: try session.keys.knownIterations(),
            session: opened.token, device: reply.deviceToken, keyring: keyring, sealed: sealed,
            keyringRevision: reply.keyringRevision,
            password.known, opens: true)
        try session.stored { try session.store.set(.rotation, nil) }
    }

    // MARK: A lost device

    /// Shuts out a lost or stolen device. It removes the passkeys that unlock, sets a new password, which ends all
    /// other sessions, replaces the data key, and creates a new printed code if the account has one.
    func shutOutLostDevice(
        password: Password, newPassword: Password, onPasswordChange: @Sendable () -> Void
    ) async throws(VaultError) -> RecoveryCode? {
        // The rotation needs an empty list of held deletions, and an account whose items can be opened.
        guard try await !syncing.syncAccount().isHeld else { throw .deletionsHeld }
        let hasCode = try await plan.account().recovery.set
        // The lost device has the account's keys in shared vaults, too. An interruption leaves them due.
        try session.memberships?.noteDisclosedKeys()
        try await PasskeyChange.removeUnlocking(password, session)
        try await session.credentials.changePassword(from: password, to: newPassword)
        onPasswordChange()
        // A sync before the change can have used a pair of keys that the lost device has got, too.
        try session.memberships?.noteDisclosedKeys()
        try await rotateKeys(password: newPassword)
        return hasCode ? try await session.credentials.makeRecoveryCode(password: newPassword) : nil
    }
}
