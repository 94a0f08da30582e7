internal import Cryptography

extension Vault {
    /// Draws a new data key and seals everything anew with it: for when somebody may have seen the old one. The password
    /// and the printed recovery code stay as they are. All other sessions end; what their devices have not sent is sealed
    /// anew there when they log in again.
    ///
    /// Where there is a printed code, ``Notice/Kind/recoveryCodeOutdated`` stays until there is another one: the old keyring
    /// holds what makes that code believe a keyring. The key that names the chunks of attachments stays, too.
    ///
    /// Each item stays the edit that it is. So what is only sealed anew can be told from what somebody has written, however
    /// often keys were changed.
    ///
    /// Nothing is changed before the server changes everything at once. Whatever stops it, the next ``sync()`` finds out
    /// whether it was done, and undoes it otherwise. What deleted items held and older versions that only the server
    /// keeps cannot be restored from the server afterwards: the new keyring does not have the key of before.
    ///
    /// ```swift
    /// try await vault.rotateKeys(password: password)
    /// ```
    /// - Returns: What was fetched and sent before.
    /// - Throws: ``VaultError/unreadable`` when the server has an item that does not open, ``VaultError/deletionsHeld``.
    @discardableResult
    public func rotateKeys(password: Password) async throws(VaultError) -> SyncReport {
        // What is sent to the server while keys change would be sealed with the old one.
        await serverLock.lock()
        defer { serverLock.unlock() }
        var report = try await round()
        guard !report.isHeld else { throw .deletionsHeld }
        let opened = try open
        let stretched = try await stretch(password, opened.userid, knownIterations())
        // The keyring is sealed under it: a server that says yes to a wrong one would lock the person out.
        guard opened.password.matches(stretched) else { throw .wrongCredentials }
        let rotation = try await call { api throws(APIError) in
            try await api.openRotation(currentPasswordKey: stretched.passwordKey, opened.token)
        }
        try stored { try store.set(.rotation, rotation.id.bytes) }
        let key = DataKey.random()
        do throws(VaultError) {
            try await carryOut(rotation.id, key, stretched, opened, into: &report)
        } catch {
            // Its reply may be all that was lost.
            try? await settleRotation()
            guard let current = self.opened, current.engine.sealer.keyring.currentKey == key else { throw error }
        }
        return report
    }

    private func carryOut(
        _ id: RotationID, _ key: DataKey, _ password: StretchedPassword, _ opened: Opened,
        into report: inout SyncReport
    ) async throws(VaultError) {
        let iterations = try knownIterations()
        var (next, revision) = try await rotatedKeyring(key)
        var staged: [ItemID: Revision] = [:]
        var fruitless = 0
        for _ in 0..<settings.limits.rounds {
            let sealer = Sealer(account: opened.account, keyring: next)
            let added = try await stage(id, sealer, opened, &staged)
            fruitless = added == 0 ? fruitless + 1 : 0
            // What the server misses is nothing that this device could seal: it has not opened it.
            if fruitless > 2 { throw .unreadable }
            let (credential, sealed) = try newCredential(
                password, iterations, next, replacing: revision, opened.account)
            let reply: RotationCommitReply
            do throws(APIError) {
                // The same again is a success: only the reply was lost then.
                reply = try await settings.retries({ () throws(APIError) in
                    try await api.commitRotation(id, credential, current: password.passwordKey, opened.token)
                })
            } catch {
                switch error.code {
                case .rotationIncomplete?:
                    // Others have written meanwhile.
                    let more = try await runEngine()
                    guard !more.isHeld else { throw .deletionsHeld }
                    report.add(more)
                case .keyringChanged?: (next, revision) = try await rotatedKeyring(key)
                default: throw VaultError(error)
                }
                continue
            }
            return try finish(next, sealed, reply, password, opened)
        }
        throw .unavailable(.unexpectedReply)
    }

    /// The keyring as the server has it, with the new key in the place of all that it has. The keys of the recovery are
    /// those that it holds.
    private func rotatedKeyring(_ key: DataKey) async throws(VaultError) -> (Keyring, Revision) {
        let (keyring, revision) = try await latestKeyring()
        return (try numberedForSending(keyring.changed { $0.dataKeys = [key] }), revision)
    }

    /// Stages what is not staged as it is now.
    /// - Returns: How many items.
    private func stage(
        _ rotation: RotationID, _ new: Sealer, _ opened: Opened, _ staged: inout [ItemID: Revision]
    ) async throws(VaultError) -> Int {
        let limits = settings.limits
        let before = opened.engine.sealer
        var batch: [StagedItem] = []
        var (bytes, count) = (0, 0)
        var last: ItemID?
        while true {
            let ids = try stored { try store.itemIDs(after: last, limit: limits.batch) }
            for id in ids {
                guard let item = try stored({ try store.item(id) }), staged[id] != item.revision else { continue }
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
        for chunk in try stored({ try store.chunks() }) where staged[chunk.id] != chunk.revision {
            guard let item = try await resealedChunk(chunk, from: before, to: new, opened) else { continue }
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
        progressObservers.notify(.sealedAnew(count, of: Int(try stored { try store.itemCount() })))
    }

    private func send(_ batch: [StagedItem], _ rotation: RotationID, _ opened: Opened) async throws(VaultError) {
        _ = try await call { api throws(APIError) in try await api.stageItems(batch, in: rotation, opened.token) }
        guard let current = self.opened, current.engine === opened.engine else { throw .locked }
    }

    private func finish(
        _ keyring: Keyring, _ sealed: [UInt8], _ reply: RotationCommitReply, _ password: StretchedPassword,
        _ opened: Opened
    ) throws(VaultError) {
        guard let current = self.opened, current.engine === opened.engine else { throw .locked }
        try remember(
            account: opened.account, userid: opened.userid, iterations: try knownIterations(), session: opened.token,
            device: reply.deviceToken, keyring: keyring, sealed: sealed, keyringRevision: reply.keyringRevision,
            password.known, opens: true)
        try stored { try store.set(.rotation, nil) }
    }

    /// Finds out what has come of a rotation whose end was not seen. Unless the server has carried it out, it is thrown
    /// away, so that a commit that is still under way changes nothing.
    func settleRotation() async throws(VaultError) {
        guard let id = try stored({ try store.fact(.rotation) }).flatMap({ RotationID(bytes: $0) }) else { return }
        let token = try open.token
        do throws(APIError) {
            try await settings.retries({ () throws(APIError) in try await api.discardRotation(id, token) })
        } catch {
            guard [.notFound, .rotationCommitted].contains(error.code) else { throw VaultError(error) }
        }
        // Before anything is sent: it would be sealed with the key of before.
        try await takeLaterKeyring()
        try stored { try store.set(.rotation, nil) }
    }
}
