internal import Cryptography

extension Vault {
    /// The end of the session after a sign-out.
    public enum SessionEnd: Sendable {
        /// The server has ended it.
        case ended
        /// The server has not replied in time, or no account was logged in. A remaining session ends after a period
        /// without use, or from another device (``endSession(_:)``).
        case left
    }

    /// Removes all data from this device, and then ends the session. The request is limited to three seconds. Running
    /// calls write nothing afterwards, and the vault cannot be used again.
    ///
    /// Example: "Lock, sign out, lost device" in docs/app.md.
    /// - Parameters:
    ///   - discardingUnsentEdits: False to throw when there are unsent edits, with nothing changed.
    ///   - forgettingHeldDeletions: False to throw when deletions wait for approval, here or in a folder. With true
    ///     they are undone if a folder still has the files, which are new to the next vault.
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
        // The request comes last. Edits during it would be lost, and a server without a reply would prevent the
        // removal.
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

    /// Removes all data of the account from this device.
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
        // Readers of sequences receive the end of the data.
        notify([])
        observers.end()
        try stored { try ending.get() }
    }
}
