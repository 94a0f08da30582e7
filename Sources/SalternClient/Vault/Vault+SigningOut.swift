internal import Cryptography

extension Vault {
    /// The end of the session after a sign-out.
    public enum SessionEnd: Sendable {
        /// The server has ended it.
        case ended
        /// The server has not answered in time, or nobody was logged in. What there is ends when nobody has used it for a
        /// while, or from another device (``endSession(_:)``).
        case left
    }

    /// Removes everything from this device, and then ends the session, for which a server that does not answer is given three
    /// seconds. Nothing that is under way writes anything here afterwards, and the vault is of no use any more.
    ///
    /// Example: "Lock, sign out, lost device" in docs/app.md.
    /// - Parameters:
    ///   - discardingUnsentEdits: Without it, edits that the server does not have keep the vault as it is.
    ///   - forgettingHeldDeletions: Without it, deletions that wait for somebody to agree do so, too, here or in a folder.
    ///     Forgotten, they are undone where a folder has the files still: to the next vault those are new.
    /// - Throws: ``VaultError/unsentEdits(count:)``, ``VaultError/deletionsHeld``.
    @discardableResult
    public func signOut(
        discardingUnsentEdits: Bool = false, forgettingHeldDeletions: Bool = false
    ) async throws(VaultError) -> SessionEnd {
        if store.isClosed { return .left }
        var token = opened?.token
        if token == nil, let kept = try? secret(.token) { token = Token(kept) }
        try forgetEverything(
            keepsUnsentEdits: !discardingUnsentEdits, keepsHeldDeletions: !forgettingHeldDeletions)
        // Last: what is written while the server is asked would be lost, and a silent server would keep everything here.
        guard let token, token != .missing else { return .left }
        return await endSession(token)
    }

    private func endSession(_ token: Token) async -> SessionEnd {
        await withTaskGroup { [api, patience = settings.signOutPatience] group in
            group.addTask { () -> SessionEnd in
                do throws(APIError) {
                    try await api.endCurrentSession(token)
                    return .ended
                } catch {
                    return error.code == .unauthenticated ? .ended : .left
                }
            }
            group.addTask {
                try? await Task.sleep(for: patience)
                return .left
            }
            defer { group.cancelAll() }
            return await group.next() ?? .left
        }
    }

    /// Nothing of the account stays on this device.
    func forgetEverything(keepsUnsentEdits: Bool, keepsHeldDeletions: Bool = false) throws(VaultError) {
        if store.isClosed { return }
        try transaction {
            let unsent = try store.changeCount()
            guard unsent == 0 || !keepsUnsentEdits else { throw VaultError.unsentEdits(count: unsent) }
            if keepsHeldDeletions, try store.holdsDeletions() { throw VaultError.deletionsHeld }
            try store.removeEverything()
            try store.set(.isSignedOut, 1)
        }
        let ending = Result { try deviceSecrets.finishSignOut() }
        store.shrink()
        store.close()
        opened = nil
        // Who follows hears that there is nothing to follow.
        notify([])
        endObserving()
        try stored { try ending.get() }
    }
}
